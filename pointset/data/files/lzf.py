"""LZF, the compression of PCD files (M. Lehmann, LibLZF): runs of new bytes, and copies of bytes that came before."""

from pointset.errors import PointsetError


def unpack_lzf(packed: bytes, size: int) -> bytes:
    """The bytes, of which there must be `size`.

    Raises:
        PointsetError: they are damaged.
    """
    found, place = bytearray(), 0
    try:
        while place < len(packed):
            control = packed[place]
            if control < 32:
                found += packed[place + 1 : place + 2 + control]
                place += 2 + control
                continue
            length = control >> 5
            if length == 7:
                place += 1
                length += packed[place]
            back = len(found) - ((control & 31) << 8) - packed[place + 1] - 1
            place, length = place + 2, length + 2
            copy = found[back : back + length] if back >= 0 else b""
            found += (copy * (length // len(copy) + 1))[:length]  # it may run into itself
    except (IndexError, ZeroDivisionError) as error:
        raise PointsetError("its compressed points are damaged") from error
    if len(found) != size:
        raise PointsetError(f"expected {size} bytes of compressed points, found {len(found)}: they are damaged")
    return bytes(found)
