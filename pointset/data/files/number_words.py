"""Words that are numbers: decimal ones in ASCII, and nothing else that Python or numpy would take for one.

No 1_000, no digits of other scripts, no hexadecimal numbers, no 1d5.
"""

import math
import re
import struct

from pointset.errors import quoted

_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_WHOLE = re.compile(rb"[+-]?\d+")
_MOST_DIGITS = 20
"""Of a whole number of 64 bits."""


class NotFiniteError(ValueError):
    """A word is nan, inf, or a number beyond float64, and must not be."""


def number_of(word: bytes, kind: str = "f8", *, finite: bool = True) -> float:
    """The number that a word is.

    Args:
        word: without blanks.
        kind: numpy's name of a type that must be able to hold it: f4, f8, or a whole number's, such as u1.
        finite: refuse nan and inf, too.

    Returns:
        The number as float64: of a whole number beyond 2^53 the nearest.

    Raises:
        NotFiniteError: it is not finite, and must be.
        ValueError: it is something else; the message says what was expected and found.
    """
    if kind[0] != "f":
        return _whole_number(word, kind)
    if not _NUMBER.fullmatch(word):
        if not _NOT_FINITE.fullmatch(word):
            raise ValueError(f"expected a number, found {quoted(word.decode(errors='replace'), 40)}")
        if finite:
            raise _not_finite(word)
        return float(word)
    number = float(word)
    if math.isinf(number):
        raise _not_finite(word)
    if kind == "f4":
        try:
            struct.pack("<f", number)  # not "f", which gives infinity
        except OverflowError:
            raise ValueError(
                f"expected a number that fits into float32, found {quoted(word.decode(errors='replace'), 40)}"
            ) from None
    return number


def is_number(word: bytes) -> bool:
    """Whether a word is a number of any size, nan or inf."""
    return bool(_NUMBER.fullmatch(word) or _NOT_FINITE.fullmatch(word))


def _not_finite(word: bytes) -> NotFiniteError:
    return NotFiniteError(f"expected a finite number, found {quoted(word.decode(errors='replace'), 40)}")


def _whole_number(word: bytes, kind: str) -> float:
    bits = 8 * int(kind[1:])
    least, most = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if _WHOLE.fullmatch(word) and len(digits := word.lstrip(b"+-").lstrip(b"0")) <= _MOST_DIGITS:
        number = int(digits or b"0") * (-1 if word.startswith(b"-") else 1)
        if least <= number <= most:
            return float(number)
    raise ValueError(
        f"expected a whole number from {least} to {most}, found {quoted(word.decode(errors='replace'), 40)}"
    )
