"""Lines, words and numbers of text formats, for oracles."""

import re

DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)
WHOLE = re.compile(rb"[+-]?[0-9]+")
LINE_END = re.compile(rb"\r\n|\n|\r")
BLANKS = b" \t\v\f"
MARK = b"\xef\xbb\xbf"


class Illegal(Exception):  # noqa: N818 - it says what the file is
    """The file breaks a rule of its format."""


def require(condition: bool, why: str) -> None:
    """Raise Illegal unless a rule is kept."""
    if not condition:
        raise Illegal(why)


def number(word: bytes) -> float:
    """A number, perhaps not finite."""
    require(DECIMAL.fullmatch(word) is not None or NOT_FINITE.fullmatch(word) is not None, f"no number: {word[:40]!r}")
    return float(word)


def finite(word: bytes) -> float:
    """A number that is finite."""
    value = number(word)
    require(abs(value) < float("inf"), f"not finite: {word[:40]!r}")
    return value


def ranged(word: bytes, size: int) -> float:
    """A number of a float type of 4 or 8 bytes: not finite only where the word says so."""
    value = number(word)
    most = 3.4028235677973366e38 if size == 4 else float("inf")
    require(NOT_FINITE.fullmatch(word) is not None or abs(value) < most, f"out of range: {word[:40]!r}")
    return value


def whole(word: bytes, least: int, most: int) -> int:
    """A whole number in [least, most]."""
    require(WHOLE.fullmatch(word) is not None, f"no whole number: {word[:40]!r}")
    digits = word.lstrip(b"+-").lstrip(b"0") or b"0"
    require(len(digits) < 40, f"out of range: {word[:40]!r}")
    value = -int(digits) if word.startswith(b"-") else int(digits)
    require(least <= value <= most, f"out of range: {value}")
    return value


def lines_of(content: bytes) -> list[bytes]:
    """Lines without their ends, whatever these are."""
    return LINE_END.split(content)


def without_mark(content: bytes) -> bytes:
    """Text without a byte order mark."""
    return content.removeprefix(MARK)
