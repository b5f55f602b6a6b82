"""Foreign text in messages is shortened, on one line, and without terminal control characters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointset.errors import REPEATED, escaped, one_line, place_in_own_code, quoted


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to say")


LONG = ["x" * 10**6, b"\x1b" * 10**6, 10**9999, -(10**5000), nested(10**5), Silent(), np.zeros((99, 99))]
LONG += [[10**5000] * 9, {str(n): n for n in range(9999)}, "\x1b]0;owned\x07" * 99, {"deep": nested(50)}]


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("most", [40, 80, 10**6])
def test_whatever_a_value_is_its_quote_is_short_and_on_one_line(value: object, most: int) -> None:
    found = quoted(value, most)
    assert 0 < len(found) <= min(most, REPEATED) + 2
    assert found.isprintable()


def test_what_is_short_is_shown_as_python_does_and_a_long_path_stays_readable() -> None:
    assert quoted({"a": [1, "a 'b'"]}) == repr({"a": [1, "a 'b'"]})
    path = Path("/folder" * 99)
    assert quoted(path) == repr(str(path))
    assert escaped(f"{path}/\x1b[2J\ud800\u202e") == rf"{path}/\x1b[2J\ud800\u202e"


def test_the_words_of_a_library_are_cut() -> None:
    assert one_line(ValueError("two\n  lines,\x07 é")) == r"two lines,\x07 é"
    assert one_line("ab " * 999, REPEATED) == ("ab " * 99)[: REPEATED - 3] + "..."


def fail_in_numpy() -> None:
    np.zeros(2).reshape(3)


def test_an_error_is_placed_in_the_innermost_code_of_ones_own():
    with pytest.raises(ValueError, match="reshape") as found:
        fail_in_numpy()
    line = fail_in_numpy.__code__.co_firstlineno + 1
    assert place_in_own_code(found.value) == f" ({__file__}, line {line})"
    assert place_in_own_code(ValueError("never raised")) == ""
