"""Words of a text as numbers, and as errors repeat them."""

from collections.abc import Sequence

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
    """The words as floats, which may be infinite or no number; a ValueError if one is something else."""
    if underscores and b"_" in b" ".join(words):
        raise ValueError("an underscore in a number")
    return [float(word) for word in words]


def excerpt(line: bytes) -> str:
    """A line as errors show it, shortened."""
    return quoted(line.decode("latin-1"), _LONGEST_EXCERPT)
