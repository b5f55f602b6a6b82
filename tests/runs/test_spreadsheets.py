"""Cells that a spreadsheet would compute are text in every CSV file, and are read back unchanged."""

import csv
import re
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


def has_formula(path: Path) -> bool:
    """True if a spreadsheet would compute a cell of the file: one that begins so, and is no number."""
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if not re.fullmatch(r"[-+]?[\d.]+", cell)]
    return any(cell.startswith(tuple("=+@\t\r\n-")) for cell in cells)


@pytest.mark.parametrize("number", [-4.6, "-4.6", "+1e3", 7, None])
def test_numbers_stay_numbers(number: object) -> None:
    assert as_csv([{"n": number}]).splitlines()[1].strip('"') == ("" if number is None else str(number))


def test_texts_of_every_table_are_no_formulas_and_read_back_unchanged(tmp_path: Path) -> None:
    rows = [{"model": text, "@SUM": text, "accuracy": "-0.5"} for text in TEXTS]
    results, guessed, embedded = (tmp_path / f"{name}.csv" for name in ("results", "guessed", "embedded"))
    results.write_bytes(as_csv(rows).encode())
    assert read_csv(results) == rows
    assert as_csv([{"class": "\udcff"}]) == "class\n\\udcff\n"
    write_guesses(guessed, [Guess(f"{text}/a.off", ((text, 0.9), ("x", 0.1)), 0.3, 16, text) for text in TEXTS])
    table, names = read_tables([guessed]), [*TEXTS]
    assert table["label"].tolist() == table["prediction"].tolist() == names
    assert judge(guessed).rows[0].mean == 1
    Embedded("=model", names, names, np.ones((len(names), 2), np.float32), names).save(embedded)
    assert not any(map(has_formula, (results, guessed, embedded)))
