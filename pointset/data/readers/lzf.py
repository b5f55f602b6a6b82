"""Decompress LZF, the compression of PCD files (M. Lehmann, LibLZF): literal runs and back references."""

from pointset.errors import PointsetError

MOST_RATIO = 88
"""Most unpacked bytes per packed byte: three bytes give at most 264."""


def unpack_lzf(packed: bytes, size: int) -> bytes:
    """Unpack exactly `size` bytes.

    Raises:
        PointsetError: the packed bytes are damaged, or do not give this size.
    """
    damaged = PointsetError(f"expected {size:,} bytes in {len(packed):,} compressed ones: they are damaged")
    if size > MOST_RATIO * len(packed):
        raise damaged
    found, place = bytearray(), 0
    try:
        while place < len(packed):
            control = packed[place]
            if control < 32:
                found += packed[place + 1 : place + control + 2]
                place += control + 2
                continue
            length = control >> 5
            if length == 7:
                place += 1
                length += packed[place]
            back = len(found) - ((control & 31) << 8) - packed[place + 1] - 1
            place, length = place + 2, length + 2
            if back < 0:
                raise damaged
            copy = found[back : back + length]
            found += (copy * (length // len(copy) + 1))[:length]  # a back reference may overlap its own output
    except IndexError as error:
        raise damaged from error
    if len(found) != size or place != len(packed):
        raise damaged
    return bytes(found)
