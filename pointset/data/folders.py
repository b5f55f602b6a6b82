"""Listing the shapes in a folder of meshes: class/split/file (ModelNet's layout) or class/file."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pointset.data.meshes import MESH_SUFFIXES
from pointset.errors import PointsetError

TEST_SHARE = 0.2
"""Of a folder without a split of its own."""

LAYOUTS = "expected class/split/file or class/file, with files of type " + ", ".join(sorted(MESH_SUFFIXES))


@dataclass(frozen=True)
class ShapeFile:
    """One mesh file of a data set."""

    path: Path
    name: str
    """The path inside the data set's folder, such as "chair/train/chair_0001.off"."""
    label: int
    split: str


def list_shapes(folder: Path, split: str, *, seed: int = 0) -> tuple[list[ShapeFile], list[str]]:
    """List the shapes of one split, by class and then by name.

    Hidden files, and files that are no meshes, are passed over. A class/file folder is split by a rule:
    within each class the files are ordered by a hash of (seed, name), and the first fifth of them, rounded,
    but at least one, is "test"; the others are "train". A class with a single shape has it in "train". So a
    new file changes nothing for most others, and the rule gives the same split on any machine.

    Args:
        folder: the data set.
        split: "train", "test" or another split that the folder has.
        seed: of the rule.

    Returns:
        The shapes, and the names of all classes, sorted: labels are indices into them.

    Raises:
        PointsetError: the layout is none of the two, or mixed, or the split has no shape; the message says
            what was found.
    """
    classes = _class_folders(folder)
    names = [path.name for path in classes]
    if _has_splits(folder, classes):
        shapes = list(_by_folder(folder, classes))
    else:
        shapes = list(_by_rule(folder, classes, seed))
    chosen = [shape for shape in shapes if shape.split == split]
    if not chosen:
        known = ", ".join(sorted({shape.split for shape in shapes}))
        raise PointsetError(f"{folder} has no shape in split {split!r}: found {known}")
    return chosen, names


def _class_folders(folder: Path) -> list[Path]:
    folders = [path for path in _visible(folder) if path.is_dir()]
    loose = _meshes(folder)
    if not folders or loose:
        found = f"{len(loose)} mesh files beside {len(folders)} folders" if loose else "no folder in it"
        raise PointsetError(f"{folder} is no data set of meshes: found {found}; {LAYOUTS}")
    if {path.name for path in folders} <= {"train", "test", "val", "valid", "validation"}:
        raise PointsetError(f"{folder} looks like split/class/file: {LAYOUTS}")
    return folders


def _has_splits(folder: Path, classes: list[Path]) -> bool:
    """Whether the class folders hold split folders; an error when they do not agree or hold nothing."""
    with_files = [path for path in classes if _meshes(path)]
    with_folders = [path for path in classes if any(_meshes(inner) for inner in _inner_folders(path))]
    for path in classes:
        if path in with_files and path in with_folders:
            raise PointsetError(f"{path} holds both mesh files and folders of them; {LAYOUTS}")
        if path not in with_files and path not in with_folders:
            raise PointsetError(f"{path} holds no mesh file; {LAYOUTS}")
    if with_files and with_folders:
        found = f"{with_files[0].name}/file beside {with_folders[0].name}/split/file"
        raise PointsetError(f"{folder} mixes two layouts: found {found}; {LAYOUTS}")
    return bool(with_folders)


def _by_folder(folder: Path, classes: list[Path]) -> Iterator[ShapeFile]:
    for label, class_folder in enumerate(classes):
        for split_folder in _inner_folders(class_folder):
            for path in _meshes(split_folder):
                yield ShapeFile(path, path.relative_to(folder).as_posix(), label, split_folder.name)


def _by_rule(folder: Path, classes: list[Path], seed: int) -> Iterator[ShapeFile]:
    for label, class_folder in enumerate(classes):
        paths = _meshes(class_folder)
        names = {path: path.relative_to(folder).as_posix() for path in paths}
        by_hash = sorted(paths, key=lambda path: hashlib.sha256(f"{seed}/{names[path]}".encode()).digest())
        test = set(by_hash[: max(1, round(TEST_SHARE * len(paths)))]) if len(paths) > 1 else set()
        for path in paths:
            yield ShapeFile(path, names[path], label, "test" if path in test else "train")


def _visible(folder: Path) -> list[Path]:
    """What a folder holds, by name; hidden entries and what macOS leaves in archives are passed over."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX")))


def _inner_folders(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.is_dir()]


def _meshes(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.suffix.lower() in MESH_SUFFIXES and path.is_file()]
