"""Cells that a spreadsheet would compute are text, and are read back unchanged."""

import csv
import io

import pytest

from pointset.comparison.tables import as_csv
from pointset.runs.spreadsheets import as_text, from_text


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "\tx", "chair", "'quoted", ""])
def test_texts_are_read_back_and_are_no_formulas(text: str) -> None:
    cell = as_text(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t"))
    assert from_text(cell) == text


@pytest.mark.parametrize("number", [-4.6, "-4.6", "+1e3", 7, None])
def test_numbers_stay_numbers(number: object) -> None:
    assert as_text(number) == number


def test_tables_of_a_comparison() -> None:
    rows = list(csv.reader(io.StringIO(as_csv([{"model": "=1+1", "accuracy": "-0.5", "@SUM": 1}]))))
    assert rows == [["model", "accuracy", "'@SUM"], ["'=1+1", "-0.5", "1"]]
