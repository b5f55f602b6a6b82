"""Convert words to numbers: decimal numbers in ASCII, and nothing else that Python or numpy would accept.

Refused are 1_000, digits of other scripts, hexadecimal numbers and 1d5.
"""

import math
import re
import struct

from pointset.errors import quoted

_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_WHOLE = re.compile(rb"[+-]?\d+")
_MOST_DIGITS = 20
"""Most digits of a 64-bit integer."""


class NotFiniteError(ValueError):
    """A word is nan, inf or a number beyond float64, where a finite number is required."""


def number_of(word: bytes, kind: str = "f8", *, finite: bool = True) -> float:
    """Convert a word to a number.

    Args:
        word: the word, without blanks.
        kind: numpy name of a type that must be able to hold the number: f4, f8, or an integer type such as u1.
        finite: refuse nan and inf.

    Returns:
        The number as float64; integers beyond 2^53 are rounded.

    Raises:
        NotFiniteError: the number is not finite, and must be.
        ValueError: the word is not a number of this type; the message says what was expected and found.
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
            struct.pack("<f", number)  # "f" without "<" would give infinity instead of an error
        except OverflowError:
            raise ValueError(
                f"expected a number that fits into float32, found {quoted(word.decode(errors='replace'), 40)}"
            ) from None
    return number


def is_number(word: bytes) -> bool:
    """True if a word is a number of any size, nan or inf."""
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
