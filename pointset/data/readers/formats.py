"""Distinguish files with meshes, files with point clouds, and other files, by name and, for .ply, by header."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pointset.errors import PointsetError

Kind = Literal["meshes", "clouds"]

TRIMESH_SUFFIXES = frozenset({".stl", ".glb", ".gltf", ".3mf", ".dae"})
"""Formats that trimesh reads; a further one of its formats needs no more than its suffix here."""
MESH_SUFFIXES = TRIMESH_SUFFIXES | {".off", ".obj", ".ply"}
NOTE_SUFFIXES = frozenset({".txt", ".csv", ".tsv"})
"""Suffixes of points as text that notes and tables have, too."""
CLOUD_SUFFIXES = NOTE_SUFFIXES | {".npy", ".npz", ".ply", ".pcd", ".xyz", ".asc", ".pts", ".xyzn", ".xyzrgb"}
UNREAD_SUFFIXES = frozenset({".3ds", ".e57", ".fbx", ".las", ".laz", ".step", ".stp", ".usd", ".usdz", ".wrl", ".x3d"})
"""Suffixes of unsupported shape formats."""
PACKED_SUFFIXES = frozenset({".bz2", ".gz", ".xz", ".zip", ".zst"})
NOTES = re.compile(r"(readme([^a-z0-9].*)?|licen[cs]e|copying)\.txt", re.DOTALL)
"""Lower-case names of text files that do not hold clouds; a cloud may be called license_plate.txt."""


def is_shape_file(name: str, *, at_top: bool) -> bool:
    """True if a file may hold a shape, by its name; text files and arrays beside the class folders do not count."""
    suffix = suffix_of(name)
    if suffix == ".txt" and NOTES.fullmatch(name.lower()):
        return False
    if at_top and suffix in (*NOTE_SUFFIXES, ".npy", ".npz"):
        return False
    return suffix in MESH_SUFFIXES or suffix in CLOUD_SUFFIXES


def is_unread_shape(name: str) -> bool:
    """True if a file is a shape in an unsupported format, or a compressed shape, by its name."""
    suffix = suffix_of(name)
    inner = suffix_of(name[: -len(suffix)]) if suffix in PACKED_SUFFIXES else suffix
    return inner in UNREAD_SUFFIXES or (inner != suffix and inner in MESH_SUFFIXES | CLOUD_SUFFIXES)


def suffix_of(name: str) -> str:
    """The last suffix of a file's name, in lower case; ten times as fast as pathlib, for folders with many files."""
    stem, dot, last = name.rpartition(".")
    return dot + last.lower() if stem else ""


def kind_of_files(folder: Path, listings: Iterable[dict[str, Path]]) -> Kind:
    """Determine whether a dataset holds meshes or clouds; if all files are .ply, the first one decides.

    Args:
        folder: folder of the dataset, for the message.
        listings: the files of each folder, by name; in a dataset of meshes, text files are removed as notes.

    Raises:
        PointsetError: there are both meshes and clouds.
    """
    listings = list(listings)
    first = _first_of_each_suffix(listings)
    meshes = [path for suffix, path in first.items() if suffix not in CLOUD_SUFFIXES]
    clouds = [path for suffix, path in first.items() if suffix not in MESH_SUFFIXES | NOTE_SUFFIXES]
    if not meshes and ".ply" in first and has_faces(first[".ply"]):
        meshes = [first[".ply"]]
    if meshes and clouds:
        raise mixed(folder, meshes[0], clouds[0])
    if not meshes:
        return "clouds" if first else "meshes"
    for files in listings:
        for name in [name for name in files if suffix_of(name) in NOTE_SUFFIXES]:
            del files[name]
    return "meshes"


def mixed(folder: Path, mesh: Path, cloud: Path) -> PointsetError:
    """The error for a dataset with both meshes and clouds."""
    found = f"{mesh.relative_to(folder).as_posix()} beside {cloud.relative_to(folder).as_posix()}"
    return PointsetError(f"{folder} mixes meshes and point clouds: found {found}; keep them in two folders")


def has_faces(path: Path) -> bool:
    """True if a PLY file's header announces faces or triangle strips; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16).partition(b"end_header")[0]
    except OSError:
        return False
    words = [line.split() for line in head.splitlines()]
    announced = [line[1:] for line in words if line[:1] == [b"element"]]
    return any(line[:1] in ([b"face"], [b"tristrips"]) and line[1:2] != [b"0"] for line in announced)


def _first_of_each_suffix(listings: Iterable[Mapping[str, Path]]) -> dict[str, Path]:
    first: dict[str, Path] = {}
    for files in listings:
        for name, path in files.items():
            first.setdefault(suffix_of(name), path)
    return first
