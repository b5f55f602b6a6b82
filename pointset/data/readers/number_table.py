"""Parse lines of numbers by numpy and, if that fails, line by line, to name the wrong line."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointset.data.readers.number_words import NotFiniteError, number_of
from pointset.errors import PointsetError

LIMITS = {"f4": 3.4e38, "f8": np.inf}
"""Numbers from here on are checked one by one; 3.4e38 is just below the largest float32."""
LETTERS = {*b"nanNANinfINFinityINITY"}
"""Letters of nan and infinity."""
LEAVE_OUT = "leave the point out"
"""Advice for a point with a number that is not finite."""


@dataclass(frozen=True)
class Form:
    """The format of all lines of a table."""

    types: tuple[str, ...]
    """numpy names of the types that the numbers must fit into."""
    kept: tuple[int, ...]
    """Indices of the numbers that are returned."""
    finite: tuple[int, ...]
    """Indices of the numbers that must be finite."""
    separator: str | None = None
    """Separator of the numbers; None means blanks."""
    split: Callable[[bytes], list[bytes]] = bytes.split
    """Splits a line into words; raises a ValueError if its separators are wrong."""
    if_not_finite: str = ""
    """Advice in the message about a number that must be finite but is not."""


def parse_lines(lines: Sequence[str], first: int, form: Form, *, usual: bool) -> np.ndarray:
    """Parse lines of numbers; blank lines are skipped.

    Args:
        lines: lines without line ends.
        first: line number of the first of them.
        form: the format of the lines.
        usual: True if there are only characters of numbers, blanks, `LETTERS` and the separator; numpy would accept
            some others as numbers or blanks.

    Returns:
        float64 [lines, kept].

    Raises:
        PointsetError: a line is wrong; the message begins with its number.
    """
    table = parse_usual(lines, form) if usual else None
    return _read_words(lines, first, form) if table is None else table


def parse_usual(lines: Sequence[str], form: Form) -> np.ndarray | None:
    """Parse lines by numpy; None if the lines are wrong, or numpy cannot decide it."""
    rows = [line for line in lines if line and not line.isspace()]
    if not rows:
        return np.empty((0, len(form.kept)))
    whole = any(kind[0] != "f" for kind in form.types)
    kinds = ["f8" if kind[0] == "f" else kind for kind in form.types]
    dtype = np.dtype([(str(place), kind) for place, kind in enumerate(kinds)]) if whole else np.dtype(np.float64)
    try:
        # numpy refuses integers that overflow their type; before version 2.3 it wrapped them, with this warning.
        with warnings.catch_warnings(action="error", category=DeprecationWarning):
            found: Any = np.loadtxt(rows, dtype, comments=None, delimiter=form.separator, ndmin=1 if whole else 2)
    except (ValueError, DeprecationWarning):
        return None
    if not whole and found.shape[1] != len(form.types):
        return None
    columns = [found[str(place)] if whole else found[:, place] for place in range(len(form.types))]
    for place, (column, kind) in enumerate(zip(columns, form.types, strict=True)):
        if kind in LIMITS and not _is_within(column, LIMITS[kind], nan=place not in form.finite):
            return None
    table = np.empty((len(found), len(form.kept)))
    for column, place in enumerate(form.kept):
        table[:, column] = columns[place]
    return table


def _is_within(column: np.ndarray, limit: float, *, nan: bool) -> bool:
    """True if all absolute values are below `limit`; `nan` allows NaN."""
    least, most = (np.fmin.reduce(column), np.fmax.reduce(column)) if nan else (column.min(), column.max())
    return bool(-limit < least and most < limit) or bool(nan and np.isnan(most))


def _read_words(lines: Sequence[str], first: int, form: Form) -> np.ndarray:
    rows = []
    for number, line in enumerate(lines, first):
        content = line.encode("latin-1")
        if not content.strip():
            continue
        try:
            words = form.split(content)
            if len(words) != len(form.types):
                raise ValueError(f"expected {len(form.types)} numbers, found {len(words)}")
            row = [
                number_of(word, kind, finite=place in form.finite)
                for place, (word, kind) in enumerate(zip(words, form.types, strict=True))
            ]
        except ValueError as error:
            advice = f": {form.if_not_finite}" if form.if_not_finite and isinstance(error, NotFiniteError) else ""
            raise PointsetError(f"line {number}: {error}{advice}") from error
        rows.append([row[place] for place in form.kept])
    return np.array(rows, np.float64).reshape(len(rows), len(form.kept))
