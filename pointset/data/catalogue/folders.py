"""List the shapes in a folder laid out as class/file, class/split/file (as ModelNet) or split/class/file.

Labels, splits and groups may come from a table instead. Files are scanned by name; what is skipped is in a warning.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointset.data.catalogue.file_tables import Cells, is_table, keep_labeled, rows_by_file
from pointset.data.catalogue.layouts import SHAPE_TYPES, layout_of, nothing_in
from pointset.data.catalogue.released import is_released
from pointset.data.catalogue.scan import (
    BESIDE_SHAPES,
    DEPTH,
    TABLES,
    FileTree,
    by_kind,
    leave_out_copies,
    note_beside,
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
from pointset.data.readers.formats import FileKind, is_mesh_file
from pointset.errors import REPEATED, PointsetError, one_line, quoted

_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
LABELED_DEPTH = 8
"""Levels of subfolders that are scanned in a folder with a table of labels."""


@dataclass(frozen=True)
class ShapeFile:
    """One file with a mesh or a point cloud."""

    path: Path
    name: str
    """Path relative to the folder, such as "chair/train/chair_0001.off"; or the given path of a file."""
    true_class: str = ""
    """Class according to its folder or a table; empty if unknown."""
    label: int = -1
    """Index of the class in its dataset; -1 outside of a dataset."""
    split: str = ""
    group: str = ""
    """Name of its group, if groups are given."""
    is_left_out: bool = False
    """True if a table of files to leave out names it."""


@dataclass(frozen=True)
class Listing:
    """The shapes of a folder."""

    folder: Path
    """The folder, to which the shapes' names are relative."""
    kind: FileKind
    """Kind of all files."""
    classes: list[str]
    """Classes in natural order; labels are indices into them."""
    splits: dict[str, list[ShapeFile]]
    """The shapes of each split, by class and then by name."""
    rule: str
    """How shapes are assigned to splits, as text."""
    is_hashed: bool
    """True if they are by a hash of their names, and not by folders or a table."""

    def of(self, split: str) -> list[ShapeFile]:
        """Return the shapes of one split; a PointsetError if it has none."""
        name = split if split in self.splits else split_called(split)
        if name not in self.splits:
            splits = one_line(", ".join(sorted(self.splits)), REPEATED)
            raise PointsetError(f"{self.folder} has no shape in split {quoted(split)}: found {splits} ({self.rule})")
        return self.splits[name]


@dataclass
class _Assignment:
    """Classes, splits and groups of files, by name."""

    class_of: dict[str, str]
    split_of: dict[str, str]
    """Empty: shapes are split by a hash."""
    group_of: dict[str, str]
    """Empty: no groups are given."""
    rule: str


def label_rows(folder: Path, *, seed: int = 0, labels: str | None = None) -> list[dict[str, str]]:
    """Return the rows of a table for `labels`: files of a folder with labels, splits and, if there are any, groups."""
    if is_released(folder):
        raise PointsetError(f"{folder} is a release, whose labels are in its files: a table is for folders of files")
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

    Text files beside meshes (notes) are skipped, and of files that differ in their suffix alone, all but one. Names are
    in Unicode's composed form (NFC). The splits train, test and validation may be called in other ways, such as
    Training, 1_train, trn, eval or dev. Folders in a class that are not called like splits are objects; the files of
    one are a group.

    Without folders of splits, shapes are split by lists beside the folders, such as modelnet40_train.txt and
    modelnet40_test.txt, or else by a rule: within each class, files are ordered by a hash of (`seed`, name); the first
    fifth, rounded but at least one, is "test", and the others are "train". A class of one shape is "train". The split
    is thus the same on any machine, and a new file changes it for few others. Of groups, whole ones are taken, by a
    hash of their names.

    Args:
        folder: the folder.
        seed: seed of the split by a hash.
        groups: see `DataOptions.groups`.
        labels: a table of files and labels, which may have splits and groups; folders may then be of any kind.
        without: a table of files to leave out.

    Warns:
        UserWarning: files are skipped, or rows of a table have no file.

    Raises:
        PointsetError: the layout is none of these, layouts or kinds of files are mixed, names collide, or a table
            cannot be used.
    """
    tree = scan_folder(folder, DEPTH if labels is None else LABELED_DEPTH)
    rows = {} if labels is None else keep_labeled(tree, labels)
    lists, listed = splits_by_lists(tree) if labels is None else ("", {})
    note_beside(tree)
    leave_out_copies(tree, notes=False)
    kind = _kind_of_files(tree)
    leave_out_copies(tree, notes=True)
    assigned = _by_folders(tree, lists, listed) if labels is None else _by_table(tree, rows, labels)
    class_of, split_of, names = assigned.class_of, assigned.split_of, [*tree.files]
    if groups == NO_GROUPS:
        assigned.group_of = {}
    elif groups is not None:
        needed = {name for name in names if split_of.get(name, SPLITS[0]) == SPLITS[0]}
        assigned.group_of = groups_of(groups, names, folder, needed)
    is_hashed = not split_of
    if is_hashed:
        split_of = splits_by_hash(class_of, assigned.group_of, seed)
        assigned.rule += f"a fifth of the files of each class is test, by a hash of their names and seed {seed}"
        assigned.rule += f", whole groups by {groups or labels or 'folders'}" if assigned.group_of else ""
    left_out = {} if without is None else rows_by_file("without", Path(without), folder, names)
    classes = natural_order({*class_of.values()})
    splits: dict[str, list[ShapeFile]] = {split: [] for split in split_of.values()}
    label_of = {name: classes.index(class_of[name]) for name in names}
    for name in sorted(names, key=lambda name: (label_of[name], name.split("/"))):
        group, label = assigned.group_of.get(name, ""), label_of[name]
        shape = ShapeFile(tree.files[name], name, class_of[name], label, split_of[name], group, name in left_out)
        splits[shape.split].append(shape)
    tree.warn_of_skipped()
    return Listing(folder, kind, classes, splits, assigned.rule, is_hashed)


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort names of classes: numbers by their values, such as 2 before 10, also within names."""
    if all(map(_NUMBER.fullmatch, names := sorted(names))):
        return sorted(names, key=float)
    parts = {name: re.split(r"(\d+)", name) for name in names}
    return sorted(names, key=lambda name: [int(part) if part.isdecimal() else part for part in parts[name]])


def groups_of(
    groups: str, names: Sequence[str], folder: Path, needed: Collection[str], *, complete: bool = True
) -> dict[str, str]:
    """Return the name of each file's group, as `DataOptions.groups` says; a file that is not needed may be alone.

    With `complete`, the names are those of all files, and rows of a table without a file are in a warning.

    Raises:
        PointsetError: `groups` cannot be used, or lacks the group of a file that is needed.
    """
    if is_table(groups):
        rows = rows_by_file("groups", Path(groups), folder, names, "group", complete=complete)
        group_of = {name: cells["group"] for name, cells in rows.items()}
    else:
        group_of = dict(zip(names, group_keys(groups, names), strict=True))
    if lacking := [name for name in names if name in needed and not group_of.get(name)]:
        raise PointsetError(
            f"groups={quoted(groups)} does not say the group of {quoted(lacking[0])}: give all shapes one"
        )
    return {name: group_of.get(name) or name for name in names}


def _by_table(tree: FileTree, rows: Mapping[str, Cells], labels: str) -> _Assignment:
    """Assign files as a table says."""
    used = {name: rows[name] for name in tree.files}
    split_of = {name: split_called(cells["split"]) for name, cells in used.items() if cells.get("split")}
    if foreign := next((split for split in split_of.values() if split not in KNOWN_SPLITS), None):
        raise PointsetError(f"split {quoted(foreign)} in {Path(labels).name} is none of {', '.join(KNOWN_SPLITS)}")
    if split_of and (lacking := [name for name in used if name not in split_of]):
        raise PointsetError(f"--labels {labels} has no split for {quoted(lacking[0])}: give all files one, or none")
    group_of = {name: cells.get("group") or name for name, cells in used.items()}
    group_of = group_of if any(cells.get("group") for cells in used.values()) else {}
    rule = f"labels of {labels}; " if not split_of else f"labels and splits of {labels}"
    return _Assignment({name: cells["label"] for name, cells in used.items()}, split_of, group_of, rule)


def _by_folders(tree: FileTree, lists: str, listed: Mapping[str, str]) -> _Assignment:
    """Assign files by the names of their folders, or by `lists` of splits beside these."""
    layout = layout_of(tree)
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


def _kind_of_files(tree: FileTree) -> FileKind:
    """Return the kind of all files; text files beside meshes are notes, and removed."""
    meshes, clouds, files = by_kind(tree.files)
    if meshes and clouds:
        count = sum(map(is_mesh_file, files.values()))
        mesh, cloud = (path.relative_to(tree.path).as_posix() for path in (meshes[0], clouds[0]))
        raise PointsetError(
            f"{tree.path} mixes meshes ({count:,}, such as {mesh}) and point clouds ({len(files) - count:,}, such as "
            f"{cloud}): keep them in two folders"
        )
    tree.files = files
    return "meshes" if meshes or not files else "clouds"


def list_shapes(folder: Path) -> list[ShapeFile]:
    """List the shape files in a folder of any of the three layouts, or in one without subfolders, by name.

    The class of a file is the first folder in its path that is not named like a split. Unlike in a dataset, meshes and
    clouds may be mixed; text files beside meshes are taken for notes. Warnings and errors are those of `list_folder`.
    """
    tree = scan_folder(folder)
    note_beside(tree)
    if not any("/" in name for name in tree.files):
        tree.files |= tree.beside
        tree.notes = [(reason, path) for reason, path in tree.notes if reason != BESIDE_SHAPES]
    tree.notes = [(reason, path) for reason, path in tree.notes if reason != TABLES]  # such as written predictions
    by_folder: dict[str, dict[str, Path]] = defaultdict(dict)
    for name, path in tree.files.items():
        by_folder[name.rpartition("/")[0]][name] = path
    shapes = []
    for inside, files in by_folder.items():
        true_class = next((name for name in inside.split("/") if not are_splits([name])), "")
        shapes += [ShapeFile(path, name, true_class) for name, path in by_kind(files)[2].items()]
    if not shapes:
        raise PointsetError(f"{folder} {nothing_in(tree, folder)}; expected {SHAPE_TYPES}")
    tree.warn_of_skipped()
    return sorted(shapes, key=lambda shape: shape.name)
