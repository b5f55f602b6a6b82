"""List the shapes in a folder laid out as class/file, class/split/file (like ModelNet) or split/class/file.

Labels, splits and groups may come from a table instead. A warning names files that are skipped.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pointset.data.catalogue.file_tables import is_table, keep_labeled, rows_by_file
from pointset.data.catalogue.released import is_released
from pointset.data.catalogue.scan import (
    BESIDE,
    DEPTH,
    EMPTY,
    TABLE,
    TOO_DEEP,
    FileTree,
    leave_out_copies,
    leave_out_notes,
    scan_folder,
)
from pointset.data.catalogue.splits import (
    KNOWN_SPLITS,
    are_splits,
    split_called,
    splits_by_folder,
    splits_by_hash,
    splits_by_lists,
)
from pointset.data.groups import NO_GROUPS, group_keys, groups_from_names, name_key
from pointset.data.options import SPLITS
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES, FileKind, suffix_of
from pointset.data.readers.meshes import Mesh
from pointset.data.readers.reading import read_shape
from pointset.errors import REPEATED, PointsetError, counted, one_line, quoted

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
LABELED_DEPTH = 8
"""Levels of subfolders that are scanned if there is a table of labels."""
EXAMINED = 4
"""Number of PLY, OBJ or OFF files that are read to see if they are meshes. A damaged mesh may have no faces."""
SHAPE_TYPES = (
    f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
)
LAYOUTS = (
    f"expected class/split/file, split/class/file or class/file with {SHAPE_TYPES}, or a table of files and labels "
    "with --labels (in Python labels=)"
)
NOTHING = "holds no mesh and no point cloud"
RELEASES = "; HDF5 files are read in the layout of ModelNet40's release, with shape_names.txt and train_files.txt"


@dataclass(frozen=True)
class ShapeFile:
    """One file with a mesh or a point cloud."""

    path: Path
    name: str
    """Path relative to the folder, such as "chair/train/chair_0001.off"; for a single file, the user's path."""
    true_class: str = ""
    """Class according to its folder or a table; empty if unknown."""
    label: int = -1
    """Index of the class in the dataset; -1 outside a dataset."""
    split: str = ""
    group: str = ""
    """Name of the group; empty without groups."""
    is_left_out: bool = False
    """True if the table of the option `without` names the file."""


@dataclass(frozen=True)
class Listing:
    """The shapes of a folder."""

    folder: Path
    """The folder to which the names of the shapes are relative."""
    kind: FileKind
    """Kind of the files: "meshes" or "clouds"."""
    classes: list[str]
    """Classes in natural order; labels are indices into them."""
    splits: dict[str, list[ShapeFile]]
    """The shapes of each split, sorted by class and then by name."""
    rule: str
    """A text that explains how shapes are assigned to splits."""
    is_hashed: bool
    """True if shapes are assigned to splits by a hash of their names, not by folders, lists or a table."""

    def of(self, split: str) -> list[ShapeFile]:
        """Return the shapes of one split; raise a PointsetError if there is no such split."""
        name = split if split in self.splits else split_called(split)
        if name not in self.splits:
            splits = one_line(", ".join(sorted(self.splits)), REPEATED)
            raise PointsetError(f"{self.folder} has no shape in split {quoted(split)}: found {splits} ({self.rule})")
        return self.splits[name]


class _Assignment(NamedTuple):
    """Classes, splits and groups of files, by name."""

    class_of: dict[str, str]
    split_of: dict[str, str]
    """Empty if shapes are split by a hash."""
    group_of: dict[str, str]
    """Empty if there are no groups."""
    rule: str


def label_rows(folder: Path, *, seed: int = 0, labels: str | None = None) -> list[dict[str, str]]:
    """Return the rows of a table for the option `labels`: each file of a folder, its label, split and any group."""
    if is_released(folder):
        raise PointsetError(f"{folder} is a release, with labels in its files: a table of labels is for other folders")
    splits = list_folder(folder, seed=seed, labels=labels).splits.values()
    shapes = sorted((shape for listed in splits for shape in listed), key=lambda shape: shape.name)
    groups = [shape.group for shape in shapes]
    if groups_from_names([shape.name for shape in shapes], [shape.label for shape in shapes]) and not any(groups):
        groups = [name_key(shape.name) for shape in shapes]
    rows = [{"file": shape.name, "label": shape.true_class, "split": shape.split} for shape in shapes]
    return [row | ({"group": group} if any(groups) else {}) for row, group in zip(rows, groups, strict=True)]


def list_folder(
    folder: Path,
    *,
    seed: int = 0,
    groups: str | None = None,
    labels: str | None = None,
    without: str | None = None,
) -> Listing:
    """List the shapes of a folder.

    Text files are skipped if there are files of other formats. If names differ only in their suffix, one file is used.
    Names are in Unicode's composed form (NFC). Folders of the splits train, test and validation may have other names,
    such as Training, 1_train, trn, eval or dev. Any other folder inside a class is one object: its files are a group.

    Without folders of splits, shapes are split by lists next to the class folders, such as modelnet40_train.txt and
    modelnet40_test.txt. Without lists, the files of each class are ordered by a hash of (`seed`, name): the first fifth
    (rounded, at least one file) is "test", and the others are "train". A class of one shape is "train". This split is
    the same on any machine. A new file changes the split of few other files. If there are groups, each whole group is
    assigned to a split, by a hash of its name.

    Args:
        folder: the folder.
        seed: seed of the split by a hash.
        groups: see `DataOptions.groups`.
        labels: a table of files and labels, which may have splits and groups. With it, the folder may have any layout.
        without: a table of files to leave out.

    Warns:
        UserWarning: files are skipped, or rows of a table name no file.

    Raises:
        PointsetError: the layout is unknown, layouts or kinds of files are mixed, names collide, or a table cannot be
            used.
    """
    tree = scan_folder(folder, DEPTH if labels is None else LABELED_DEPTH)
    class_of, split_of, group_of, rule = _by_folders(tree) if labels is None else _by_table(tree, labels)
    kind, names = _kind_of_files(tree), [*tree.files]
    if groups == NO_GROUPS:
        group_of = {}
    elif groups is not None:
        needed = {name for name in names if split_of.get(name, SPLITS[0]) == SPLITS[0]}
        group_of = groups_of(groups, names, folder, needed)
    is_hashed = not split_of
    if is_hashed:
        split_of = splits_by_hash(class_of, group_of, seed)
        rule += f"a fifth of the files of each class is test, by a hash of their names and seed {seed}"
        rule += f", whole groups by {groups or labels or 'folders'}" if group_of else ""
    left_out = {} if without is None else rows_by_file("without", Path(without), folder, names)
    classes = natural_order({*class_of.values()})
    splits: dict[str, list[ShapeFile]] = {split: [] for split in split_of.values()}
    label_of = {name: classes.index(class_of[name]) for name in names}
    for name in sorted(names, key=lambda name: (label_of[name], name.split("/"))):
        group, label = group_of.get(name, ""), label_of[name]
        shape = ShapeFile(tree.files[name], name, class_of[name], label, split_of[name], group, name in left_out)
        splits[shape.split].append(shape)
    tree.warn_of_skipped()
    return Listing(folder, kind, classes, splits, rule, is_hashed)


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort class names. Numbers in names are sorted by value, so that 2 comes before 10."""
    if all(map(_NUMBER.fullmatch, names := sorted(names))):
        return sorted(names, key=float)
    parts = {name: re.split(r"(\d+)", name) for name in names}
    return sorted(names, key=lambda name: [int(part) if part.isdecimal() else part for part in parts[name]])


def groups_of(
    groups: str, names: Sequence[str], folder: Path, needed: Collection[str], *, complete: bool = True
) -> dict[str, str]:
    """Return the group of each file; see `DataOptions.groups`. A file without a group is a group by itself.

    With `complete`, `names` are all files, so a warning lists the rows of a table that name no file.

    Raises:
        PointsetError: `groups` cannot be used, or a file of `needed` has no group.
    """
    if is_table(groups):
        rows = rows_by_file("groups", Path(groups), folder, names, "group", complete=complete)
        group_of = {name: cells["group"] for name, cells in rows.items()}
    else:
        group_of = dict(zip(names, group_keys(groups, names), strict=True))
    if lacking := [name for name in names if name in needed and not group_of.get(name)]:
        raise PointsetError(
            f"groups={quoted(groups)} does not give the group of {quoted(lacking[0])}: give all shapes a group"
        )
    return {name: group_of.get(name) or name for name in names}


def _by_table(tree: FileTree, labels: str) -> _Assignment:
    """Assign classes, splits and groups to files by a table."""
    rows = keep_labeled(tree, labels)
    leave_out_copies(tree)
    used = {name: rows[name] for name in tree.files}
    split_of = {name: split_called(cells["split"]) for name, cells in used.items() if cells.get("split")}
    if unknown := next((split for split in split_of.values() if split not in KNOWN_SPLITS), None):
        raise PointsetError(f"split {quoted(unknown)} in {Path(labels).name} is none of {', '.join(KNOWN_SPLITS)}")
    if split_of and (lacking := [name for name in used if name not in split_of]):
        raise PointsetError(f"--labels {labels} has no split for {quoted(lacking[0])}: give all files a split, or none")
    group_of = {name: cells.get("group") or name for name, cells in used.items()}
    group_of = group_of if any(cells.get("group") for cells in used.values()) else {}
    rule = f"labels of {labels}; " if not split_of else f"labels and splits of {labels}"
    return _Assignment({name: cells["label"] for name, cells in used.items()}, split_of, group_of, rule)


def _by_folders(tree: FileTree) -> _Assignment:
    """Assign classes and groups to files by their folders, and splits by folders or by lists next to these."""
    lists, listed = splits_by_lists(tree)
    leave_out_notes(tree)
    leave_out_copies(tree)
    layout = _layout_of(tree)
    tree.notes += [(TABLE, path) for path in tree.beside.values()]
    if listed and "split" not in layout:
        tree.skip(f"that {lists} do not name", [name for name in tree.files if name not in listed])
    parts = {name: dict(zip(layout.split("/"), name.split("/"), strict=True)) for name in tree.files}
    class_of = {name: of_file["class"] for name, of_file in parts.items()}
    if "split" in layout:
        split_of = splits_by_folder(tree, {name: of_file["split"] for name, of_file in parts.items()})
        return _Assignment(class_of, split_of, {}, f"folders {layout}")
    objects = {name: name.rpartition("/")[0] for name in tree.files} if "object" in layout else {}
    group_of = objects if len({*objects.values()}) < len(objects) else {}
    split_of = {name: listed[name] for name in class_of} if listed else {}
    return _Assignment(class_of, split_of, group_of, f"lists {lists}" if listed else "")


def _layout_of(tree: FileTree) -> str:
    """Return the layout of a folder; raise a PointsetError for an unknown one, or if shapes are nested too deeply.

    A folder in a class is an object (class/object/file) unless it is named like a split. A warning lists empty classes.
    """
    tops = [folder for folder in tree.folders if "/" not in folder]
    loose = sum("/" not in name for name in tree.files) + len(tree.beside) * (not tops)
    if not tops or loose:
        where = f"beside {counted(len(tops), 'folder')}" if tops else "in no folder"
        content = f"{counted(loose, 'mesh or cloud file')} {where}" if loose else "no folder in it"
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {content}{_skipped(tree)}; {LAYOUTS}")
    direct, nested = ([name for name in tree.files if name.count("/") == depth] for depth in (1, 2))
    inner = {folder.split("/")[1] for folder in tree.folders if "/" in folder}
    splits_first = are_splits(tops) and not (inner and are_splits(inner))
    if direct and (nested or splits_first):
        other = f" beside {nested[0]}" if nested else ""
        raise PointsetError(f"{tree.path} is not in a known layout: found {direct[0]}{other}; {LAYOUTS}")
    level = int(splits_first)
    classes: dict[str, list[Path]] = defaultdict(list)
    for folder in tree.folders:
        if folder.count("/") == level:
            classes[folder.split("/")[level]].append(tree.path / folder)
    filled = {name.split("/")[level] for name in tree.files}
    for name in sorted({*classes} - filled):
        if not filled or TOO_DEEP in tree.skipped(*classes[name]):
            fault = f"class {quoted(name)} of {tree.path} {NOTHING}{_skipped(tree, *classes[name])}"
            raise PointsetError(f"{fault}; {LAYOUTS}")
        tree.notes += [(EMPTY, path) for path in classes[name]]
    if splits_first or not nested:
        return "split/class/file" if splits_first else "class/file"
    return "class/split/file" if any(are_splits([name]) for name in inner) else "class/object/file"


def _skipped(tree: FileTree, *folders: Path) -> str:
    """Return the part of a message that lists the files that are not read."""
    texts = [f"; {text}" for text in tree.skipped(*folders).values()]
    return "".join(texts) + RELEASES * any(".h5," in text or ".hdf5," in text for text in texts)


def _kind_of_files(tree: FileTree) -> FileKind:
    """Return the kind of all files by suffix. If a suffix has two kinds, `EXAMINED` files are read."""
    first_of: dict[FileKind, Path] = {}
    for suffix in sorted({suffix_of(name) for name in tree.files}):
        paths = [path for name, path in tree.files.items() if suffix_of(name) == suffix]
        if suffix in MESH_SUFFIXES & CLOUD_SUFFIXES:
            kinds: list[FileKind] = [kind for path in paths[:EXAMINED] if (kind := _kind_of(path))]
            kind = "meshes" if "meshes" in kinds or not kinds else "clouds"
        else:
            kind = "meshes" if suffix in MESH_SUFFIXES else "clouds"
        first_of.setdefault(kind, paths[0])
    if len(first_of) > 1:
        mesh, cloud = (first_of[kind].relative_to(tree.path).as_posix() for kind in ("meshes", "clouds"))
        raise PointsetError(
            f"{tree.path} mixes meshes (such as {mesh}) and point clouds (such as {cloud}): keep them in two folders"
        )
    return next(iter(first_of), "meshes")


def _kind_of(path: Path) -> FileKind | None:
    """Return the kind of a file; None if it cannot be read."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return "meshes" if isinstance(read_shape(path), Mesh) else "clouds"
    except PointsetError:
        return None


def list_shapes(folder: Path) -> list[ShapeFile]:
    """List the shape files of a folder in one of the three layouts or without subfolders, sorted by name.

    The class of a file is the first folder in its path that is not named like a split. Unlike in a dataset, meshes and
    clouds may be mixed. Warnings and errors are those of `list_folder`.
    """
    tree = scan_folder(folder)
    if any("/" in name for name in tree.files):
        tree.notes += [(BESIDE, path) for path in tree.beside.values()]
    else:
        tree.files |= tree.beside
    leave_out_notes(tree)
    if not tree.files:
        raise PointsetError(f"{folder} {NOTHING}{_skipped(tree, folder)}; expected {SHAPE_TYPES}")
    tree.warn_of_skipped()
    shapes = []
    for name, path in sorted(tree.files.items()):
        folders = name.split("/")[:-1]
        shapes.append(ShapeFile(path, name, next((inside for inside in folders if not are_splits([inside])), "")))
    return shapes
