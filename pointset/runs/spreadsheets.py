"""CSV files in which an apostrophe precedes each text that a spreadsheet would take for a formula."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of formulas in spreadsheets (OWASP, "CSV Injection")."""


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with the columns of the first row; characters that UTF-8 cannot encode are escaped."""
    lines, columns = list[str](), list(rows[0]) if rows else []
    writer = csv.writer(SimpleNamespace(write=lines.append))  # rows end in \r\n: cells with \r or \n are quoted
    writer.writerow(map(_as_text, columns))
    writer.writerows([_as_text(row.get(name)) for name in columns] for row in rows)
    text = "".join(line.removesuffix("\r\n") + "\n" for line in lines)
    return text.encode(errors="backslashreplace").decode()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file that `as_csv` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{from_text(name): from_text(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def from_text(cell: Any) -> Any:
    """Return the value of a cell without the apostrophe of `as_csv`."""
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _is_formula(cell[1:]) else cell


def _as_text(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def _is_formula(text: str) -> bool:
    if not text.lstrip("'").startswith(FORMULA):  # apostrophes before a formula get one more, which reading removes
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
