"""Mutations of the files of numpy: their headers, and archives of them."""

import io
import struct
import zipfile
import zlib
from functools import cache
from random import Random

import numpy as np

from fuzzing import mutations
from fuzzing.kinds.cloud_seeds import NPY_FILES, saved

TYPES = [
    b"'<f8'",
    b"'<f4'",
    b"'>f8'",
    b"'<i8'",
    b"'|b1'",
    b"'|O'",
    b"'<c16'",
    b"'<U1'",
    b"'<f16'",
    b"[('x','<f8')]",
    b"'f8'",
]
SHAPES = [b"(6, 3)", b"(3, 6)", b"(18, 1)", b"(18,)", b"(6, 3, 1)", b"(-1, 3)", b"(1000000000000, 3)", b"(0, 3)", b"6"]
FLAGS = [
    b"True",
    b"False",
    b"None",
    b"1",
    b"(((((",
    b"'" * 7,
    b"[" * 300,
    b"{" * 3000,
    b"lambda:0",
    b"True,",
    b"\\x",
    b"{",
]
NPY_WORDS = [mutations.with_words(TYPES), mutations.with_words(SHAPES), mutations.with_words(FLAGS)]


def npy_mutation(content: bytes, random: Random) -> bytes:
    """Change the words of a header, of which the length is mostly put right, or the numbers."""
    if random.random() < 0.6 or len(content) < 12 or content[6:7] not in (b"\1", b"\2", b"\3"):
        return random.choice(mutations.BINARY)(content, random)
    size = "<H" if content[6] == 1 else "<I"
    start = 8 + struct.calcsize(size)
    end = start + struct.unpack_from(size, content.ljust(12), 8)[0]
    if end > len(content):
        return random.choice(mutations.BINARY)(content, random)
    header = random.choice([*mutations.TEXT, *NPY_WORDS])(content[start:end].rstrip(), random) + b"\n"
    if random.random() < 0.8:
        header = header.rjust(end - start) if random.random() < 0.1 else header[:-1].ljust(end - start - 1) + b"\n"
    length = len(header) if random.random() < 0.9 else end - start
    return content[:8] + struct.pack(size, length % 65536) + header + content[end:]


@cache
def bomb() -> bytes:
    """An archive that grows a thousand times, to 96 MiB of zeros, made without having them."""
    rows, piece = 2**22, bytes(2**20)
    head = saved(np.zeros((1, 3)))[:-24].replace(b"(1, 3), }      ", b"(%d, 3), }" % rows)
    packer = zlib.compressobj(wbits=-15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    blocks = 24 * rows // len(piece)
    data = start + block * blocks + packer.flush()
    crc = zlib.crc32(head)
    for _ in range(blocks):
        crc = zlib.crc32(piece, crc)
    name, size = b"points.npy", len(head) + 24 * rows
    about = struct.pack("<5H3L2H", 20, 0, 8, 0, 33, crc, len(data), size, len(name), 0)
    entry = b"PK\1\2" + struct.pack("<H", 20) + about + struct.pack("<3H2L", 0, 0, 0, 0, 0) + name
    local = b"PK\3\4" + about + name + data
    return local + entry + b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 1, 1, len(entry), len(local), 0)


def repacked(content: bytes, random: Random) -> bytes:
    """An archive of damaged arrays, or with a member more; a bomb stays as it is."""
    if len(content) > 50_000:
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return content
    if not members or random.random() < 0.01:
        return bomb()
    name = random.choice(list(members))
    if random.random() < 0.3:
        members[random.choice(["normals.npy", "points.npy", "a.npy", "note.txt"])] = random.choice(NPY_FILES)
    else:
        members[name] = npy_mutation(members[name], random)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data)
    return file.getvalue()
