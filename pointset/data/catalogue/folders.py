"""Listing the shapes in a folder: class/split/file (ModelNet's layout), split/class/file or class/file."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.catalogue.branches import Branch, read_branch
from pointset.data.catalogue.passed_over import clouds_in_text, deep_files, warn_of_passed_over
from pointset.data.files.file_kinds import CLOUD_SUFFIXES, MESH_SUFFIXES, Kind, has_faces, kind_of_files, mixed
from pointset.errors import REPEATED, PointsetError, one_line, quoted

TEST_SHARE = 0.2
"""Of a folder without a split of its own."""

SPLITS = frozenset({"train", "training", "test", "testing", "val", "valid", "validation"})
"""Names of folders, in any case of letters, that tell split/class/file from class/split/file."""
ALIASES = {"training": "train", "testing": "test"}
"""Such names that are another's."""

TYPES = f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
LAYOUTS = f"expected class/split/file, split/class/file or class/file, with {TYPES}"


@dataclass(frozen=True)
class ShapeFile:
    """One file of a dataset, with a mesh or a point cloud."""

    path: Path
    name: str
    """Its path inside the dataset's folder, such as "chair/train/chair_0001.off"."""
    label: int
    split: str


@dataclass(frozen=True)
class LooseShape:
    """A file with a mesh or a point cloud, in a dataset or not."""

    path: Path
    name: str
    """The path as it was given, or inside the folder that was given."""
    true_class: str = ""
    """What the folder says of its class; empty where it says nothing."""


@dataclass(frozen=True)
class Listing:
    """The shapes of one split."""

    shapes: list[ShapeFile]
    classes: list[str]
    """Of the whole folder, sorted: labels are indices into them."""
    kind: Kind
    """What all files of the folder hold."""
    present: dict[str, frozenset[int]] = field(default_factory=dict)
    """The labels that have shapes, by split."""
    rule: str = ""
    """How shapes come to their splits, in words."""


def list_folder(folder: Path, split: str, *, seed: int = 0) -> Listing:
    """List the shapes of one split, by class and then by name.

    Hidden files, files that are neither meshes nor clouds, and text beside meshes, being notes, are skipped. Names are
    compared, sorted and given in Unicode's composed form (NFC). The splits train and test may be called so in any case
    of letters, or training and testing.

    A class/file folder is split by a rule: within each class the files are ordered by a hash of (`seed`, name), and the
    first fifth of them, rounded, but at least one, is "test"; the others are "train". The shape of a class of one is
    "train". So the split is the same on any machine, and a new file changes it for few others.

    Warns:
        UserWarning: shapes lie deeper than the layouts have them, clouds beside the folders, or shapes are of formats
            that are not read; they are not taken.

    Raises:
        PointsetError: the layout is none of the three, or mixed, meshes and clouds are mixed, two names are one, or
            the split has no shape; the message says what was found.
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
    warn_of_passed_over(tree)
    return Listing(chosen, classes, kind, present, rule)


def split_called(name: str) -> str:
    """The split that a folder's name says: train for Train, TRAIN and Training, another name as it stands."""
    folded = name.casefold()
    return ALIASES.get(folded, folded) if folded in SPLITS else name


def list_shapes(folder: Path) -> list[LooseShape]:
    """List the files of shapes in a folder of any of the three layouts, or in one without folders, by name.

    The class is the first folder on the way to the file that does not have the name of a split. Other than for a data
    set, meshes may lie beside clouds; text beside meshes is taken for notes.

    Warns:
        UserWarning: shapes lie more than two folders deep, clouds beside folders of shapes, or shapes are of formats
            that are not read; they are not taken.

    Raises:
        PointsetError: there is no such file, or a name cannot be used.
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
    warn_of_passed_over(tree)
    return sorted(found, key=lambda shape: shape.name)


def _class_in(inside: str) -> str:
    return next((name for name in inside.split("/") if name.casefold() not in SPLITS), "")


def _without_notes(files: dict[str, Path]) -> dict[str, Path]:
    """The files without the text among them, if there is a mesh; a .ply file without faces is none."""
    others = {name: path for name, path in files.items() if path.suffix.lower() != ".txt"}
    if len(others) == len(files):  # nothing has to be opened
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
            _refuse_mixed(tree, same)
            raise PointsetError(f"class {quoted(name)} of {tree.path} {_nothing_in(same)}; {LAYOUTS}")


def _refuse_mixed(tree: Branch, empty: list[Branch]) -> None:
    """Refuse clouds in text beside meshes, where a class has nothing else: it was taken for notes."""
    meshes = (path for branch in tree.walk() for path in branch.files.values())
    mesh, text = next(meshes, None), next(clouds_in_text(inner for one in empty for inner in one.walk()), None)
    if mesh and text:
        raise mixed(tree.path, mesh, text)


def _nothing_in(branches: list[Branch]) -> str:
    """What is said of folders in which no file is taken for a shape."""
    first = next(deep_files(inner for branch in branches for inner in branch.walk()), None)
    if first is None:
        return "holds no mesh and no point cloud"
    return f"holds shapes in too many folders inside each other, the first is {quoted(first)}: move them up"


def _has_splits(tree: Branch) -> bool:
    """Whether the class folders hold split folders; an error when they do not agree or hold nothing."""
    with_files = [branch for branch in tree.folders if branch.files]
    with_folders = [branch for branch in tree.folders if any(inner.files for inner in branch.folders)]
    for branch in tree.folders:
        if branch in with_files and branch in with_folders:
            raise PointsetError(f"{branch.path} holds both files of shapes and folders of them; {LAYOUTS}")
        if branch not in with_files and branch not in with_folders:
            _refuse_mixed(tree, [branch])
            raise PointsetError(f"{branch.path} {_nothing_in([branch])}; {LAYOUTS}")
    if with_files and with_folders:
        found = f"{with_files[0].name}/file beside {with_folders[0].name}/split/file"
        raise PointsetError(f"{tree.path} mixes two layouts: found {found}; {LAYOUTS}")
    return bool(with_folders)


def _by_folder(folder: Path, places: Iterable[tuple[str, str, Branch]]) -> tuple[list[ShapeFile], list[str]]:
    """Shapes by class, from (class, split, folder), and the classes that have some."""
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
    """Refuse train beside Train: somebody may have meant them to differ."""
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
