"""Zip files that are damaged, or made to fill memory or a disk: what is asked of datasets and of .npz files alike."""

import lzma
import os
import struct
import zipfile
import zlib
from typing import BinaryIO

from pointset.errors import quoted

MOST_RATIO = 100
"""Unpacked bytes per packed byte: meshes as text reach 10, archives made to fill a disk many thousands."""
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,  # of encrypted files, and (NotImplementedError) of compressions and versions from elsewhere
    IndexError,  # by zipfile, of a name without letters
    ValueError,  # of a name that is not UTF-8, or that no file can have
)
"""Raised by `zipfile` for damaged, cut or encrypted files, beside some OSErrors."""
_ENTRY = b"PK\x01\x02"
"""Beginning of an entry in the directory of a zip file."""
_END = struct.Struct("<4s4H2LH")
"""Its last record: its mark, two numbers of disks, two counts of entries, size and place, and a comment's length."""
_ENTRY_SIZE = 46
_LENGTHS, _LENGTHS_AT = struct.Struct("<3H"), 28
"""Bytes of an entry without its name, extra field and comment; and where their lengths stand."""
_ELSEWHERE = (0xFFFF, 0xFFFF_FFFF)
"""Stand for a number that did not fit, and that is found elsewhere in a zip file of more than 4 GiB."""


def entries(content: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """All that the directory of a zip file names.

    Raises:
        zipfile.BadZipFile: a damaged length hides some of them.
    """
    for info in content.infolist():
        if _ENTRY in info.extra + info.comment:
            raise zipfile.BadZipFile(f"the entry of {quoted(info.filename)} hides other files")
    return content.infolist()


def require_whole_directory(file: BinaryIO, content: zipfile.ZipFile) -> None:
    """Require of a zip file's directory that its last record says of it what is there; `zipfile` is more lenient.

    Raises:
        zipfile.BadZipFile: it says something else.
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
