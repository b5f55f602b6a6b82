"""Zip files that are damaged, or made to fill memory or a disk: what is asked of data sets and of .npz files alike."""

import lzma
import struct
import zipfile
import zlib

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


def entries(content: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """All that the directory of a zip file names.

    Raises:
        zipfile.BadZipFile: a damaged length hides some of them.
    """
    for info in content.infolist():
        if _ENTRY in info.extra + info.comment:
            raise zipfile.BadZipFile(f"what is said of {quoted(info.filename)} hides other files")
    return content.infolist()
