"""Check zip files (datasets and .npz) for damage, and against zip bombs."""

import lzma
import os
import struct
import zipfile
import zlib
from typing import BinaryIO

from pointset.errors import quoted

MOST_RATIO = 100
"""Most unpacked bytes per packed byte: meshes as text reach 10, zip bombs many thousands."""
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,  # encrypted files, and (NotImplementedError) unknown compressions and versions
    IndexError,  # an empty file name
    ValueError,  # a file name that is not UTF-8, or is impossible
)
"""Errors of `zipfile` for damaged, truncated or encrypted files, beside some OSErrors."""
_ENTRY = b"PK\x01\x02"
"""Signature of an entry in the central directory of a zip file."""
_END = struct.Struct("<4s4H2LH")
"""End record: signature, two disk numbers, two counts of entries, size and offset of the directory, comment length."""
_ENTRY_SIZE = 46
"""Bytes of an entry without its name, extra field and comment."""
_LENGTHS, _LENGTHS_AT = struct.Struct("<3H"), 28
"""The lengths of name, extra field and comment, and their offset in an entry."""
_ELSEWHERE = (0xFFFF, 0xFFFF_FFFF)
"""Placeholders for numbers that a zip file of more than 4 GiB stores elsewhere."""


def entries(content: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """All entries in the directory of a zip file.

    Raises:
        zipfile.BadZipFile: a damaged length hides some entries.
    """
    for info in content.infolist():
        if _ENTRY in info.extra + info.comment:
            raise zipfile.BadZipFile(f"the entry of {quoted(info.filename)} hides other files")
    return content.infolist()


def require_whole_directory(file: BinaryIO, content: zipfile.ZipFile) -> None:
    """Check the directory of a zip file against its end record, more strictly than `zipfile`.

    Raises:
        zipfile.BadZipFile: they disagree.
    """
    size = file.seek(0, os.SEEK_END)
    begin = file.seek(max(0, size - _END.size - 0xFFFF))
    tail = file.read()
    place = tail.rfind(b"PK\x05\x06")
    _, disk, first_disk, here, count, length, start, comment = _END.unpack_from(tail, place)
    if any(number in _ELSEWHERE for number in (count, length, start)):
        return
    file.seek(begin + place - length)
    said, entry, found = file.read(length), 0, 0
    while entry + _ENTRY_SIZE <= length:
        entry += _ENTRY_SIZE + sum(_LENGTHS.unpack_from(said, entry + _LENGTHS_AT))
        found += 1
    counts = {here, count, found, len(content.infolist())}
    if disk or first_disk or len(counts) > 1 or entry != length or place + _END.size + comment != len(tail):
        raise zipfile.BadZipFile("its directory is damaged")
