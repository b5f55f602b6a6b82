"""Ways to damage a file whatever it holds: bits, bytes and words of four, cut off, doubled or added."""

import struct
from random import Random

BYTES = b" \n\r\t.-+,;/\\#eE_0123456789xvf\x00\x0b\x0c\x1c\x85\xa0\xff\"'{}[]:"
WORDS = [b"\x00" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\x80\x00\x00\x00"]


def cut_off(content: bytes, random: Random) -> bytes:
    """Only the beginning."""
    return content[: random.randrange(len(content) + 1)]


def surplus(content: bytes, random: Random) -> bytes:
    """Something after the end."""
    more = [b"\x00", b"\x00" * 9, b"0", b"0 0 0\n", b"\x1a", b"3 0 1 2\n", b"abc\n", content[-7:], content]
    return content + random.choice(more)


def flip_bit(content: bytes, random: Random) -> bytes:
    """One bit the other way."""
    if not content:
        return content
    place = random.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]


def put_byte(content: bytes, random: Random) -> bytes:
    """One byte inserted or replaced, mostly one that means something."""
    place = random.randrange(len(content) + 1)
    byte = bytes([random.choice(BYTES) if random.random() < 0.8 else random.randrange(256)])
    return content[:place] + byte + content[place + random.randrange(2) :]


def drop_bytes(content: bytes, random: Random) -> bytes:
    """One or a few bytes less."""
    place = random.randrange(len(content) + 1)
    return content[:place] + content[place + random.choice([1, 1, 1, 2, 3, 8, 40]) :]


def repeat_bytes(content: bytes, random: Random) -> bytes:
    """A few bytes twice."""
    place, length = random.randrange(len(content) + 1), random.choice([1, 2, 4, 8, 30])
    return content[: place + length] + content[place:]


def put_mark(content: bytes, random: Random) -> bytes:
    """A byte order mark, or another encoding."""
    kind = random.randrange(8)
    if kind < 6:
        return b"\xef\xbb\xbf" + content
    return content.decode("latin-1").encode("utf-16" if kind == 6 else "utf-16-le")


def put_word(content: bytes, random: Random) -> bytes:
    """Four bytes that are a special number, or one near what was there."""
    place = random.randrange(max(len(content) - 3, 1))
    if random.random() < 0.5 or len(content) < place + 4:
        return content[:place] + random.choice(WORDS) + content[place + 4 :]
    code = random.choice(["<I", ">I"])
    value = (struct.unpack_from(code, content, place)[0] + random.choice([-1, 1, 2, 256])) % 2**32
    return content[:place] + struct.pack(code, value) + content[place + 4 :]
