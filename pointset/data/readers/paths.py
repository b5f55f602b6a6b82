"""Check that a path is a regular file of limited size before it is opened: a pipe or a device may never end."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES
from pointset.errors import REPEATED, PointsetError, one_line

MOST_BYTES = 4 << 30
"""Most bytes of a file that is read as a whole."""


def path_fault(path: Path, most: int | None = None) -> str:
    """The reason why a path cannot be read as a file, whatever its suffix; "" if it can.

    Args:
        path: the path.
        most: most bytes of the file; None means any size.
    """
    try:
        facts = path.stat()
    except FileNotFoundError:
        return "there is no such file or folder: check its spelling"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except ValueError as error:  # a name with a zero byte
        return f"cannot be read: {error}"
    if stat.S_ISDIR(facts.st_mode):
        return "is a folder, but a file is read: give a file in it"
    if not stat.S_ISREG(facts.st_mode):
        return "is a pipe or a device, but a regular file is read: save its content to a file first"
    if most is not None and facts.st_size > most:
        return f"has {facts.st_size:,} bytes, more than the {most:,} that are read as a whole"
    return ""


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file as a whole.

    Raises:
        PointsetError: the path is not a regular file of at most `most` bytes, or cannot be read; the message names it.
    """
    if fault := path_fault(path, most):
        raise PointsetError(f"{path}: {fault}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise PointsetError(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise PointsetError(f"{path}: does not fit into memory") from error


def require_shape_file(path: Path) -> None:
    """Require a file with the suffix of a mesh or a point cloud.

    Raises:
        PointsetError: there is no such file, it is a folder, a pipe or a device, or its suffix is another.
    """
    if fault := path_fault(path):
        raise PointsetError(f"{path}: {fault}")
    if path.suffix.lower() not in MESH_SUFFIXES | CLOUD_SUFFIXES:
        meshes, clouds = (", ".join(sorted(suffixes)) for suffixes in (MESH_SUFFIXES, CLOUD_SUFFIXES))
        raise PointsetError(
            f"{path}: a mesh's file ends in one of {meshes}, and a point cloud's in one of {clouds}, not in "
            f"{path.suffix or 'no suffix'!r}"
        )


@contextmanager
def naming(path: Path, kind: type[PointsetError]) -> Iterator[None]:
    """Convert errors to those of one kind, that begin with the file's name; libraries raise any kind for damage."""
    try:
        yield
    except PointsetError as error:
        message = str(error)
        if not message.startswith(str(path)):
            message = f"{path}{',' if message.startswith('line ') else ':'} {message}"
        raise kind(message) from error
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror or one_line(error, REPEATED)}") from error
    except MemoryError as error:
        raise kind(f"{path}: does not fit into memory") from error
    except Exception as error:
        reason = one_line(error, REPEATED) or type(error).__name__
        raise kind(f"{path}: is damaged, or not a {path.suffix} file ({reason}): restore it from a copy") from error
