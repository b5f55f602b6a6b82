"""Words as numbers: the limits of every type, the spellings, and errors for all other words."""

import math

import pytest

from pointset.data.readers.number_words import number_of


@pytest.mark.parametrize(
    ("word", "kind", "number"),
    [
        *[(str(number), f"u{size}", number) for size in (1, 2, 4, 8) for number in (0, 2 ** (8 * size) - 1)],
        *[(str(sign), f"i{size}", sign) for size in (1, 2, 4, 8) for sign in (-(2 ** (8 * size - 1)), -1)],
        *[(str(2 ** (8 * size - 1) - 1), f"i{size}", 2 ** (8 * size - 1) - 1) for size in (1, 2, 4, 8)],
        *[("+7", "u1", 7), ("-0", "u1", 0), ("-000", "i2", 0), ("0" * 30 + "7", "u1", 7), ("-007", "i1", -7)],
        *[("1.", "f8", 1), (".5", "f4", 0.5), ("-1.5E+2", "f8", -150), ("3.4028235e38", "f4", 3.4028235e38)],
        *[("1e308", "f8", 1e308), ("1e-400", "f4", 0)],
    ],
)
@pytest.mark.parametrize("finite", [True, False])
def test_what_a_type_holds_is_read(word: str, kind: str, number: float, finite: bool) -> None:
    found = number_of(word.encode(), kind, finite=finite)
    assert found == float(number)
    assert type(found) is float


WHOLE = {"u1": "from 0 to 255", "i1": "from -128 to 127", "u4": "from 0 to 4294967295"}


@pytest.mark.parametrize(
    ("word", "kind", "expected"),
    [
        *[(word, "u1", f"a whole number {WHOLE['u1']}") for word in ("256", "-1", "1.0", "1e1", "", "+", "1_0", "nan")],
        *[(word, "i1", f"a whole number {WHOLE['i1']}") for word in ("128", "-129", "--1", "0x1", "\u0661")],
        *[(word, "u4", f"a whole number {WHOLE['u4']}") for word in ("4294967296", "9" * 5000)],
        *[(str(2**64), "u8", "from 0 to 18446744073709551615"), (str(2**63), "i8", "to 9223372036854775807")],
        *[("3.41e38", "f4", "a number that fits into float32"), ("-1e39", "f4", "a number that fits into float32")],
        *[(word, kind, "a finite number") for word in ("1e400", "nan", "-Infinity", "INF") for kind in ("f4", "f8")],
        *[(word, "f8", "a number, found") for word in ("1_0", "1d5", "0x1", ".", "e5", "1e", "x", "\u0661", "in")],
    ],
)
def test_another_word_is_told_with_what_was_expected(word: str, kind: str, expected: str) -> None:
    with pytest.raises(ValueError, match=r"^expected ") as caught:
        number_of(word.encode(), kind)
    message, shown = str(caught.value), word if len(word) < 40 else "9" * 10
    assert expected in message
    assert message.partition(", found ")[2].startswith(f"'{shown}")
    assert len(message) < 140


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_numbers_that_are_none_may_be_allowed(kind: str) -> None:
    assert math.isnan(number_of(b"nan", kind, finite=False))
    assert number_of(b"-inf", kind, finite=False) == -math.inf
    with pytest.raises(ValueError, match="expected a finite number, found '1e400'"):
        number_of(b"1e400", kind, finite=False)
    with pytest.raises(ValueError, match="expected a number, found 'none'"):
        number_of(b"none", kind, finite=False)
