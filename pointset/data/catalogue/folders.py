"""List the shapes in a folder laid out as class/split/file (as ModelNet), split/class/file or class/file."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.catalogue.file_tree import Branch, deep_files, read_branch, warn_of_skipped
from pointset.data.readers.formats import (
    CLOUD_SUFFIXES,
    MESH_SUFFIXES,
    NOTE_SUFFIXES,
    Kind,
    has_faces,
    kind_of_files,
    suffix_of,
)
from pointset.errors import REPEATED, PointsetError, one_line, quoted

TEST_SHARE = 0.2
"""Share of test shapes in a folder without splits."""

SPLITS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation"})
"""Case-insensitive folder names that distinguish split/class/file from class/split/file."""
ALIASES = {"training": "train", "testing": "test"}
"""Alternative names of splits."""

TYPES = f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
LAYOUTS = f"expected class/split/file, split/class/file or class/file, with {TYPES}"


@dataclass(frozen=True)
class ShapeFile:
    """One file of a dataset, with a mesh or a point cloud."""

    path: Path
    name: str
    """Path relative to the dataset's folder, such as "chair/train/chair_0001.off"."""
    label: int
    split: str


@dataclass(frozen=True)
class LooseShape:
    """A file with a mesh or a point cloud, which need not be part of a dataset."""

    path: Path
    name: str
    """The given path, or the path relative to the given folder."""
    true_class: str = ""
    """Class according to its folder; empty if unknown."""


@dataclass(frozen=True)
class Listing:
    """The shapes of one split."""

    shapes: list[ShapeFile]
    classes: list[str]
    """Classes of the whole folder, sorted; labels are indices into them."""
    kind: Kind
    """Kind of all files of the folder."""
    present: dict[str, frozenset[int]] = field(default_factory=dict)
    """The labels that have shapes, by split."""
    rule: str = ""
    """How shapes are assigned to splits, as text."""


def list_folder(folder: Path, split: str, *, seed: int = 0) -> Listing:
    """List the shapes of one split, by class and then by name.

    Hidden files, files that are neither meshes nor clouds, and text files beside meshes (notes) are skipped. Names are
    compared, sorted and returned in Unicode's composed form (NFC). The names of the splits train and test are
    case-insensitive, and may be training and testing.

    A class/file folder is split by a rule: within each class, files are ordered by a hash of (`seed`, name); the first
    fifth, rounded but at least one, is "test", and the others are "train". A class of one shape is "train". The split
    is thus the same on any machine, and a new file changes it for few others.

    Warns:
        UserWarning: shapes are skipped because they are in too deep folders, are clouds beside the folders, or have
            unsupported formats.

    Raises:
        PointsetError: the layout is none of the three, or layouts or kinds of files are mixed, names collide, or the
            split has no shape; the message says what was found.
    """
    tree = read_branch(folder)
    _require_folders(tree)
    kind = kind_of_files(folder, [branch.files for branch in tree.walk()])
    if _splits_come_first(tree):
        _require_shapes_inside(tree)
        places = [(inner.name, branch.name, inner) for branch in tree.folders for inner in branch.folders]
        rule, (shapes, classes) = "folders split/class/file", _by_folder(folder, places)
    elif _has_splits(tree):
        places = [(branch.name, inner.name, inner) for branch in tree.folders for inner in branch.folders]
        rule, (shapes, classes) = "folders class/split/file", _by_folder(folder, places)
    else:
        rule = f"a fifth of each class is test, by a hash of its names and seed {seed}"
        classes = [branch.name for branch in tree.folders]
        shapes = [shape for label, branch in enumerate(tree.folders) for shape in _by_rule(branch, label, seed)]
    split = split_called(split)
    chosen = [shape for shape in shapes if shape.split == split]
    present = _by_split(shapes)
    if not chosen:
        raise PointsetError(
            f"{folder} has no shape in split {quoted(split)}: found {one_line(', '.join(sorted(present)), REPEATED)}"
        )
    warn_of_skipped(tree)
    return Listing(chosen, classes, kind, present, rule)


def split_called(name: str) -> str:
    """The split of a folder's name: train for Train, TRAIN and Training; other names are returned unchanged."""
    folded = name.casefold()
    return ALIASES.get(folded, folded) if folded in SPLITS else name


def list_shapes(folder: Path) -> list[LooseShape]:
    """List the shape files in a folder of any of the three layouts, or in one without subfolders, by name.

    The class of a file is the first folder in its path that is not named like a split. Unlike in a dataset, meshes and
    clouds may be mixed; text files beside meshes are taken for notes.

    Warns:
        UserWarning: shapes are skipped because they are more than two folders deep, are clouds beside folders of
            shapes, or have unsupported formats.

    Raises:
        PointsetError: there are no shape files, or a name cannot be used.
    """
    tree = read_branch(folder)
    if not any(branch.files for branch in tree.walk() if branch is not tree):
        tree = read_branch(folder, loose=True)
    found = [
        LooseShape(path, f"{branch.inside}/{name}" if branch.inside else name, _class_in(branch.inside))
        for branch in tree.walk()
        for name, path in _without_notes(branch.files).items()
    ]
    if not found:
        raise PointsetError(f"{folder} {_nothing_in([tree])}; expected {TYPES}")
    warn_of_skipped(tree)
    return sorted(found, key=lambda shape: shape.name)


def _class_in(inside: str) -> str:
    return next((name for name in inside.split("/") if name.casefold() not in SPLITS), "")


def _without_notes(files: dict[str, Path]) -> dict[str, Path]:
    """The files without text files, if any of them is a mesh; a .ply file is a mesh only if it has faces."""
    others = {name: path for name, path in files.items() if suffix_of(name) not in NOTE_SUFFIXES}
    if len(others) == len(files):  # no need to open .ply files
        return files
    meshes = (path for path in others.values() if path.suffix.lower() in MESH_SUFFIXES)
    return others if any(path.suffix.lower() != ".ply" or has_faces(path) for path in meshes) else files


def _by_split(shapes: list[ShapeFile]) -> dict[str, frozenset[int]]:
    """The labels that have shapes in each split."""
    pairs = {(shape.split, shape.label) for shape in shapes}
    return {split: frozenset(label for one, label in pairs if one == split) for split in {one for one, _ in pairs}}


def _require_folders(tree: Branch) -> None:
    loose, folders = len(tree.files), len(tree.folders)
    if not folders or loose:
        found = f"{loose} mesh or cloud files beside {folders} folders" if loose else "no folder in it"
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {found}; {LAYOUTS}")


def _splits_come_first(tree: Branch) -> bool:
    inner = {inner.name.casefold() for branch in tree.folders for inner in branch.folders}
    return {branch.name.casefold() for branch in tree.folders} <= SPLITS and not (inner and inner <= SPLITS)


def _require_shapes_inside(tree: Branch) -> None:
    for branch in tree.folders:
        if branch.files:
            raise PointsetError(f"{tree.path} looks like split/class/file, but has {branch.name}/file; {LAYOUTS}")
    classes = [inner for branch in tree.folders for inner in branch.folders]
    for name in sorted({inner.name for inner in classes}):
        same = [inner for inner in classes if inner.name == name]
        if not any(inner.files for inner in same):
            raise PointsetError(f"class {quoted(name)} of {tree.path} {_nothing_in(same)}; {LAYOUTS}")


def _nothing_in(branches: list[Branch]) -> str:
    """The part of a message about folders without shapes."""
    first = next(deep_files(inner for branch in branches for inner in branch.walk()), None)
    if first is None:
        return "holds no mesh and no point cloud"
    return f"holds shapes in too deeply nested folders, the first is {quoted(first)}: move them up"


def _has_splits(tree: Branch) -> bool:
    """True if the class folders hold split folders; a PointsetError if they differ in this, or are empty."""
    with_files = [branch for branch in tree.folders if branch.files]
    with_folders = [branch for branch in tree.folders if any(inner.files for inner in branch.folders)]
    for branch in tree.folders:
        if branch in with_files and branch in with_folders:
            raise PointsetError(f"{branch.path} holds both files of shapes and folders of them; {LAYOUTS}")
        if branch not in with_files and branch not in with_folders:
            raise PointsetError(f"{branch.path} {_nothing_in([branch])}; {LAYOUTS}")
    if with_files and with_folders:
        found = f"{with_files[0].name}/file beside {with_folders[0].name}/split/file"
        raise PointsetError(f"{tree.path} mixes two layouts: found {found}; {LAYOUTS}")
    return bool(with_folders)


def _by_folder(folder: Path, places: Iterable[tuple[str, str, Branch]]) -> tuple[list[ShapeFile], list[str]]:
    """Make shapes, sorted by class and split, from triples (class, split, folder); also return the classes."""
    filled = [place for place in places if place[2].files]
    _require_one_name_each(folder, {split for _, split, _ in filled})
    classes = sorted({class_name for class_name, _, _ in filled})
    label_of = {name: label for label, name in enumerate(classes)}
    shapes = [
        ShapeFile(path, f"{branch.inside}/{name}", label_of[class_name], split_called(split))
        for class_name, split, branch in sorted(filled, key=lambda place: place[:2])
        for name, path in branch.files.items()
    ]
    return shapes, classes


def _require_one_name_each(folder: Path, splits: set[str]) -> None:
    """Raise a PointsetError for two names of one split, such as train and Train, which may be meant to differ."""
    names: dict[str, str] = {}
    for name in sorted(splits, reverse=True):
        other = names.setdefault(split_called(name), name)
        if other != name:
            raise PointsetError(f"{folder} has the splits {quoted(other)} and {quoted(name)}: give both one name")


def _by_rule(branch: Branch, label: int, seed: int) -> list[ShapeFile]:
    names = {f"{branch.inside}/{name}": path for name, path in branch.files.items()}
    by_hash = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
    test = set(by_hash[: max(1, round(TEST_SHARE * len(names)))]) if len(names) > 1 else set()
    return [ShapeFile(path, name, label, "test" if name in test else "train") for name, path in names.items()]
