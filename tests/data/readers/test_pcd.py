"""LZF: runs and copies by hand, and damaged data, which is refused without taking memory or time."""

import pytest

from pointset.data.readers.elements import unpack_lzf
from pointset.errors import PointsetError

DAMAGED = [
    (b"\x02ab", 2),
    (b"\x20\x00", 3),
    (b"\x00a\x20\x01", 4),
    (b"\x00a\x20", 4),
    (b"\x00a\xe0", 4),
    (b"\x02abc", 4),
]


def test_runs_and_copies_by_hand() -> None:
    assert unpack_lzf(b"\x02abc", 3) == b"abc"
    assert unpack_lzf(b"\x02abc\x20\x02", 6) == b"abcabc"  # 3 bytes from 3 back
    assert unpack_lzf(b"\x00a\xe0\x00\x00", 10) == b"a" * 10  # 9 bytes from 1 back: a copy that runs into itself
    assert unpack_lzf(b"\x01ab\xe0\x05\x01", 16) == (b"ab" * 9)[:16]


@pytest.mark.parametrize(("packed", "size"), [*DAMAGED, (b"\x00a" + b"\xe0\xff\x00" * 100_000, 1 << 40)])
def test_damaged_data_is_refused(packed: bytes, size: int) -> None:
    with pytest.raises(PointsetError, match="compressed ones: they are damaged"):
        unpack_lzf(packed, size)
