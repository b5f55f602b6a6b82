"""Texts in CSV files that a spreadsheet would take for formulas."""

from collections.abc import Mapping
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of what spreadsheets compute (OWASP, "CSV Injection")."""


def as_text(value: Any) -> Any:
    """A value for a cell: a text that would be a formula begins with an apostrophe; numbers stay as they are."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def from_text(value: str) -> str:
    """The text of a cell that `as_text` wrote."""
    return value[1:] if value.startswith("'") and value[1:].startswith(FORMULA) else value


def as_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of cells."""
    return {as_text(name): as_text(value) for name, value in row.items()}
