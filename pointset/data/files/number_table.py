"""Numbers in lines of text: parsed by numpy, then line by line only to name the wrong one."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointset.data.files.number_words import NotFiniteError, number_of
from pointset.errors import PointsetError

LIMITS = {"f4": 3.4e38, "f8": np.inf}
"""Numbers from here on are looked at one by one: 3.4e38 is just below the greatest of float32."""
LETTERS = {*b"nanNANinfINFinityINITY"}
"""Of nan and infinity."""
LEAVE_OUT = "leave the point out"
"""What to do with a point that has one."""


@dataclass(frozen=True)
class Form:
    """What stands on every line."""

    types: tuple[str, ...]
    """numpy's names of the types that the numbers must fit into."""
    kept: tuple[int, ...]
    """Places of the numbers that are given back."""
    finite: tuple[int, ...]
    """Places of those that must be finite."""
    separator: str | None = None
    """What stands between the numbers; blanks if None."""
    split: Callable[[bytes], list[bytes]] = bytes.split
    """Splits a line into words; raises a ValueError if it is not separated as it should be."""
    if_not_finite: str = ""
    """What to do with a line of which a number is not finite and must be; for errors."""


def parse_lines(lines: Sequence[str], first: int, form: Form, *, usual: bool) -> np.ndarray:
    """Parse lines of numbers; those without words are skipped.

    Args:
        lines: without their ends.
        first: number of the first of them.
        form: what stands on every line.
        usual: whether there are no characters but those of numbers, blanks, `LETTERS` and the separator, as it should
            be: numpy would take some others for numbers or blanks.

    Returns:
        float64 [lines, kept].

    Raises:
        PointsetError: a line is wrong; the message begins with its number.
    """
    table = parse_usual(lines, form) if usual else None
    return _read_words(lines, first, form) if table is None else table


def parse_usual(lines: Sequence[str], form: Form) -> np.ndarray | None:
    """What numpy's parser makes of usual lines; None for others, good or bad."""
    rows = [line for line in lines if line and not line.isspace()]
    if not rows:
        return np.empty((0, len(form.kept)))
    whole = any(kind[0] != "f" for kind in form.types)
    kinds = ["f8" if kind[0] == "f" else kind for kind in form.types]
    dtype = np.dtype([(str(place), kind) for place, kind in enumerate(kinds)]) if whole else np.dtype(np.float64)
    try:
        # numpy refuses whole numbers that do not fit into their type; before 2.3 it cut them to it, with this warning.
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
    """Whether all numbers are smaller than `limit`; NaN may be allowed."""
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
