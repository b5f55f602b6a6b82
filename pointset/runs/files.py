"""Open only regular files of a limited size: a pipe may never end, and a device or a huge file fills the memory."""

import stat
from pathlib import Path

from pointset.errors import PointsetError

MOST_BYTES = 4 << 30
"""Maximum bytes of a file that is read as a whole."""
SMALL, MOST_RATIO = 1 << 26, 100
"""Unpacked bytes that are always allowed, and maximum ratio of unpacked to packed bytes (10 for meshes in text)."""
MOST_SETTINGS = 16 << 20
"""Maximum bytes of a file with settings or names, such as an experiment."""


def require_file(path: Path, most: int | None = MOST_BYTES) -> None:
    """Require a regular file of at most `most` bytes, or of any size if `most` is None.

    Raises:
        PointsetError: the path is a folder, a pipe, a device or a socket, or the file is too large.
        OSError: the path does not exist, or cannot be reached.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise PointsetError(f"{path}: is a folder, but a file is read: give a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise PointsetError(
            f"{path}: is a pipe or a device, but a regular file is read: save its content to a file first"
        )
    if most is not None and status.st_size > most:
        raise PointsetError(f"{path}: has {status.st_size:,} bytes, more than the {most:,} that are read as a whole")


def require_unpackable(archive: Path, size: int) -> None:
    """Raise a PointsetError if an archive unpacks to an implausible number of bytes, which could fill the disk."""
    packed = archive.stat().st_size
    if size > max(SMALL, MOST_RATIO * packed):
        raise PointsetError(f"{archive} has {packed:,} bytes and unpacks to {size:,}: get it from its source")


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file after `require_file` has checked it."""
    require_file(path, most)
    return path.read_bytes()
