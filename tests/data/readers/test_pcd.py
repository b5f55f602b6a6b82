"""LZF: runs and copies by hand, and damaged data, which is rejected quickly."""

import pytest

from pointset.data.readers.pcd import unpack_lzf
from pointset.errors import PointsetError


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (b"\x02abc", b"abc"),
        (b"\x02abc\x20\x02", b"abcabc"),  # 3 bytes from 3 back
        (b"\x00a\xe0\x00\x00", b"a" * 10),  # 9 bytes from 1 back: a copy that runs into itself
        (b"\x01ab\xe0\x05\x01", (b"ab" * 9)[:16]),
    ],
)
def test_by_hand(packed: bytes, expected: bytes) -> None:
    assert unpack_lzf(packed, len(expected)) == expected


@pytest.mark.parametrize(
    ("packed", "size"),
    [(b"\x02ab", 2), (b"\x20\x00", 3), (b"\x00a\x20\x01", 4), (b"\x00a\x20", 4), (b"\x00a\xe0", 4), (b"\x02abc", 4)],
)
def test_damaged(packed: bytes, size: int) -> None:
    with pytest.raises(PointsetError, match=f"{size} bytes in {len(packed)} compressed ones: they are damaged"):
        unpack_lzf(packed, size)


def test_a_size_that_cannot_be_takes_no_time() -> None:
    with pytest.raises(PointsetError, match="damaged"):
        unpack_lzf(b"\x00a" + b"\xe0\xff\x00" * 100_000, 1 << 40)
