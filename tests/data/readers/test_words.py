"""Tables of numbers that numpy reads at once, and words as quoted in errors."""

import numpy as np
import pytest

from pointset.data.readers.words import excerpt, usual_table


@pytest.mark.parametrize(
    ("block", "table"),
    [
        (b"1 2 3\n4 5 6\n", [[1, 2, 3], [4, 5, 6]]),
        (b"1 2 3", [[1, 2, 3]]),
        (b"1\n2\n", [[1], [2]]),
        (b"  1.5\t-2e-3 \r\n\n +.5 16777217", [[1.5, -2e-3], [0.5, 16777217]]),
    ],
)
def test_lines_of_as_many_numbers_are_rows(block, table):
    found = usual_table(block)
    assert found.dtype == np.float64
    assert found.tolist() == table


@pytest.mark.parametrize("block", [b"", b" \n\t\n", b"1 2\n3\n", b"1 2 x\n", b"1 2 # two\n", b"# none\n", b"1,2\n"])
def test_other_blocks_are_left_to_the_slow_path(block):
    assert usual_table(block) is None


def test_an_excerpt_is_short_and_of_any_bytes():
    assert excerpt(b"v 1 2 x") == "'v 1 2 x'"
    assert excerpt(b"\xff\x1b[2J") == r"'\xff\x1b[2J'".replace(r"\xff", "\xff")
    assert excerpt(b"x" * 38) == repr("x" * 38)
    long = excerpt(b"first" + b"x" * 5000 + b"last")
    assert len(long) == 40
    assert long.startswith("'first")
    assert long.endswith("last'")
