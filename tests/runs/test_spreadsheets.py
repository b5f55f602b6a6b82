"""Cells that a spreadsheet would compute are text in every CSV file, and are read back unchanged."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pointset.comparison.judge import judge, read_tables
from pointset.evaluation.embedding import Embedded
from pointset.evaluation.shape_files import Guess, write_guesses
from pointset.runs.spreadsheets import as_csv, read_csv

TEXTS = (
    *("=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "\tx", "\rx", "\nx"),
    *("chair", "'quoted", "'=1", "''-x", "None", "NA", "ü ♥", 'a "b", c'),
)


def written(path: Path) -> list[str]:
    """All cells of a file, as a spreadsheet sees them."""
    with path.open(encoding="utf-8", newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def no_formula(path: Path) -> bool:
    return not any(cell.startswith(tuple("=+@\t\r\n-")) and not is_number(cell) for cell in written(path))


def is_number(cell: str) -> bool:
    return cell.lstrip("+-").replace(".", "").isdecimal()


@pytest.mark.parametrize("number", [-4.6, "-4.6", "+1e3", 7, None])
def test_numbers_stay_numbers(number: object) -> None:
    assert as_csv([{"n": number}]).splitlines()[1].strip('"') == ("" if number is None else str(number))


def test_tables_of_a_comparison(tmp_path: Path) -> None:
    rows = [{"model": text, "@SUM": text, "accuracy": "-0.5"} for text in TEXTS]
    (tmp_path / "results.csv").write_bytes(as_csv(rows).encode())
    assert no_formula(tmp_path / "results.csv")
    assert read_csv(tmp_path / "results.csv") == rows
    assert as_csv([{"class": "\udcff"}]) == "class\n\\udcff\n"


def test_predictions_of_classes_are_judged_by_their_names(tmp_path: Path) -> None:
    guesses = [Guess(f"{text}/a.off", ((text, 0.9), ("x", 0.1)), 0.3, 16, text) for text in TEXTS]
    file = tmp_path / "first.csv"
    write_guesses(file, guesses)
    assert no_formula(file)
    table = read_tables([file])
    for column in ("label", "prediction"):
        assert table[column].tolist() == [*TEXTS]
    assert judge(file).rows[0].mean == 1


def test_embeddings(tmp_path: Path) -> None:
    names = list(TEXTS)
    embedded = Embedded("=model", names, names, np.ones((len(names), 2), np.float32), names)
    embedded.save(tmp_path / "rows.csv")
    assert no_formula(tmp_path / "rows.csv")
