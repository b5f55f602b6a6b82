"""Check a path before its suffix determines a reader."""

import stat
from pathlib import Path

from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES
from pointset.errors import PointsetError


def path_fault(path: Path) -> str:
    """The reason why a path cannot be read as a file, whatever its suffix; "" if it can."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "there is no such file or folder: check its spelling"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except ValueError as error:  # a name with a zero byte
        return f"cannot be read: {error}"
    return "is a folder, but a shape is read from a file: give a file in it" if stat.S_ISDIR(mode) else ""


def require_shape_file(path: Path) -> None:
    """Require a file with the suffix of a mesh or a point cloud.

    Raises:
        PointsetError: there is no such file, it is a folder, or its suffix is another.
    """
    if fault := path_fault(path):
        raise PointsetError(f"{path}: {fault}")
    if path.suffix.lower() not in MESH_SUFFIXES | CLOUD_SUFFIXES:
        meshes, clouds = (", ".join(sorted(suffixes)) for suffixes in (MESH_SUFFIXES, CLOUD_SUFFIXES))
        raise PointsetError(
            f"{path}: a mesh's file ends in one of {meshes}, and a point cloud's in one of {clouds}, not in "
            f"{path.suffix or 'no suffix'!r}"
        )
