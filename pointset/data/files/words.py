"""Words of a text as numbers, and as errors repeat them."""

import io
from collections.abc import Sequence

import numpy as np

from pointset.errors import quoted

_LONGEST_EXCERPT = 40


def whole_numbers(words: Sequence[bytes], underscores: bool = True) -> list[int]:
    """The words as integers; a ValueError if one is something else.

    Args:
        words: of a line.
        underscores: whether the file has any: Python reads 1_000 as a number, no file format does.
    """
    if underscores and b"_" in b" ".join(words):
        raise ValueError("an underscore in a number")
    return [int(word) for word in words]


def numbers(words: Sequence[bytes], underscores: bool = True) -> list[float]:
    """The words as floats, which may be infinite or NaN; a ValueError if one is something else."""
    if underscores and b"_" in b" ".join(words):
        raise ValueError("an underscore in a number")
    return [float(word) for word in words]


def usual_table(block: bytes) -> np.ndarray | None:
    """Lines of decimal numbers, as many on each, float64 [lines, numbers]; None for others. Blanks alone give None.

    What numpy takes beside decimal numbers and blanks has to be kept from it by whoever calls.
    """
    try:
        # Takes a line for a row and refuses rows of different lengths.
        return np.loadtxt(io.BytesIO(block), np.float64, comments=None, ndmin=2) if block.strip() else None
    except ValueError:
        return None


def excerpt(line: bytes) -> str:
    """A line as errors show it, shortened."""
    return quoted(line.decode("latin-1"), _LONGEST_EXCERPT)
