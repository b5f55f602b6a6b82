"""Whether a shape can be read from a path at all: known before its suffix chooses a reader."""

import stat
from pathlib import Path

from pointset.data.files.file_kinds import CLOUD_SUFFIXES, MESH_SUFFIXES
from pointset.errors import PointsetError


def path_fault(path: Path) -> str:
    """Why no file can be read from a path, whatever its suffix; empty if there is one."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "there is no such file or folder: check its spelling"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except ValueError as error:  # a name with a zero byte
        return f"cannot be read: {error}"
    return "is a folder, and one shape is read from one file: give a file in it" if stat.S_ISDIR(mode) else ""


def require_shape_file(path: Path) -> None:
    """Refuse a path that is neither a mesh's nor a cloud's, where both are taken.

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
