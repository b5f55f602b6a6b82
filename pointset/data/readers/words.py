"""Convert words of a text to numbers, and shorten lines for messages."""

import io
from collections.abc import Sequence

import numpy as np

from pointset.errors import quoted

_LONGEST_EXCERPT = 40


def whole_numbers(words: Sequence[bytes], underscores: bool = True) -> list[int]:
    """Convert words to integers; a ValueError if one is not an integer.

    Args:
        words: the words of a line.
        underscores: whether the file has underscores, which are refused: Python accepts 1_000, but no file format does.
    """
    if underscores and b"_" in b" ".join(words):
        raise ValueError("an underscore in a number")
    return [int(word) for word in words]


def numbers(words: Sequence[bytes], underscores: bool = True) -> list[float]:
    """Convert words to floats, including inf and nan; a ValueError if one is not a number."""
    if underscores and b"_" in b" ".join(words):
        raise ValueError("an underscore in a number")
    return [float(word) for word in words]


def usual_table(block: bytes) -> np.ndarray | None:
    """Parse lines of equally many decimal numbers to float64 [lines, numbers]; None for other lines, or only blanks.

    The caller must exclude characters that numpy accepts beside decimal numbers and blanks.
    """
    try:
        # loadtxt refuses rows of different lengths.
        return np.loadtxt(io.BytesIO(block), np.float64, comments=None, ndmin=2) if block.strip() else None
    except ValueError:
        return None


def excerpt(line: bytes) -> str:
    """A line, quoted and shortened for a message."""
    return quoted(line.decode("latin-1"), _LONGEST_EXCERPT)
