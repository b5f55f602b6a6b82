"""List the shapes in a folder laid out as class/file, class/split/file (as ModelNet) or split/class/file.

Labels, splits and groups may come from a table instead. Files are scanned by name; what is skipped is in a warning.
"""

import glob
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pointset.data.catalogue.file_tables import Cells, is_table, matcher, read_text, rows_by_file
from pointset.data.catalogue.released import is_released
from pointset.data.catalogue.scan import (
    BESIDE_SHAPES,
    DEPTH,
    EMPTY,
    TABLES,
    TOO_DEEP,
    FileTree,
    by_kind,
    leave_out_copies,
    may_hold_cloud,
    note_beside,
    scan_folder,
)
from pointset.data.groups import (
    NO_GROUPS,
    group_keys,
    groups_from_names,
    hold_out,
    name_key,
)
from pointset.data.options import SPLITS
from pointset.data.readers.formats import (
    CLOUD_SUFFIXES,
    LIST_SUFFIXES,
    MESH_SUFFIXES,
    SHAPE_SUFFIXES,
    FileKind,
    is_mesh_file,
    suffix_of,
)
from pointset.errors import REPEATED, PointsetError, counted, one_line, quoted

LABELED_DEPTH = 8
"""Levels of subfolders that are scanned in a folder with a table of labels."""
OBJECTS_IN_FOLDERS = "; if each folder has several shapes of one object, `train` and `compare` read it with --groups 2"
TEST_SHARE = 0.2
"""Share of test shapes in a folder without splits."""
SPLIT_FOLDERS = re.compile(
    r"(\d+[-_ ]?)?((?P<train>train(ing)?|trn)|(?P<test>test(ing)?|tst|eval(uation)?)|"
    r"(?P<validation>val(id(ation)?)?|dev))([-_ ]?(set|split|data))?"
)
"""Names of folders of splits, in lower case, which distinguish split/class/file from class/split/file."""
SHAPE_TYPES = (
    f"meshes of type {', '.join(sorted(MESH_SUFFIXES))} or point clouds of type {', '.join(sorted(CLOUD_SUFFIXES))}"
)
LAYOUTS = (
    f"expected class/split/file, split/class/file or class/file with {SHAPE_TYPES}, or a table of files and labels "
    "with --labels (in Python labels=)"
)
RELEASES = "; HDF5 files are read in the layout of ModelNet40's release, with shape_names.txt and train_files.txt"


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
    """The shapes of one split."""

    shapes: list[ShapeFile]
    classes: list[str]
    """Classes of the whole folder in natural order; labels are indices into them."""
    kind: FileKind
    """Kind of all files of the folder."""
    folder: Path
    """The folder, to which the shapes' names are relative."""
    present: dict[str, frozenset[int]]
    """The labels that have shapes, by split."""
    rule: str
    """How shapes are assigned to splits, as text."""
    is_hashed: bool
    """True if they are by a hash of their names, and not by folders or a table."""


@dataclass
class _Assignment:
    """Classes, splits and groups of files, by name."""

    class_of: dict[str, str]
    split_of: dict[str, str]
    """Empty: shapes are split by a hash."""
    group_of: dict[str, str]
    """Empty: no groups are given."""
    rule: str


def list_folder(
    folder: Path,
    split: str,
    *,
    seed: int = 0,
    groups: str | None = None,
    labels: str | None = None,
    without: str | None = None,
) -> Listing:
    """List the shapes of one split; see `list_splits`."""
    listings = list_splits(folder, seed=seed, groups=groups, labels=labels, without=without)
    name = split if split in listings else split_called(split)
    if name not in listings:
        known = one_line(", ".join(sorted(listings)), REPEATED)
        hint = "" if any(_are_splits([other]) for other in listings) else OBJECTS_IN_FOLDERS
        if groups is not None and any(listing.is_hashed for listing in listings.values()):
            hint = f"; in each class all shapes are one group by groups={quoted(groups)}, and a test asks for two"
        raise PointsetError(f"{folder} has no shape in split {quoted(split)}: found {known}{hint}")
    return listings[name]


def list_to_look(folder: Path, *, seed: int = 0, labels: str | None = None) -> dict[str, Listing]:
    """The splits of a folder to look at; if no folder in its classes is a split, they are objects of several shapes."""
    listings = list_splits(folder, seed=seed, labels=labels)
    if labels is not None or any(_are_splits([name]) for name in listings):
        return listings
    return list_splits(folder, seed=seed, groups="2")


def label_rows(folder: Path, *, seed: int = 0, labels: str | None = None) -> list[dict[str, str]]:
    """The rows of a table for `labels`: the files of a folder with labels, splits and, if there are any, groups."""
    if is_released(folder):
        raise PointsetError(f"{folder} is a release, whose labels are in its files: a table is for folders of files")
    listings = list_to_look(folder, seed=seed, labels=labels).values()
    shapes = sorted((shape for listing in listings for shape in listing.shapes), key=lambda shape: shape.name)
    groups = [shape.group for shape in shapes]
    if groups_from_names([shape.name for shape in shapes], [shape.label for shape in shapes]) and not any(groups):
        groups = [name_key(shape.name) for shape in shapes]
    rows = [{"file": shape.name, "label": shape.true_class, "split": shape.split} for shape in shapes]
    return [row | ({"group": group} if any(groups) else {}) for row, group in zip(rows, groups, strict=True)]


def list_splits(
    folder: Path,
    *,
    seed: int = 0,
    groups: str | None = None,
    labels: str | None = None,
    without: str | None = None,
) -> dict[str, Listing]:
    """List the shapes of each split of a folder, by class and then by name.

    Text files beside meshes (notes) are skipped, and of files that differ in their suffix alone, all but one. Names are
    in Unicode's composed form (NFC). The splits train, test and validation may be called in other ways, such as
    Training, 1_train, trn, eval or dev. Folders in a class that are not called like splits are shapes, if they have one
    file each, or objects of several files with `groups`.

    A class/file folder is split by lists beside the folders, such as modelnet40_train.txt and modelnet40_test.txt, or
    else by a rule: within each class, files are ordered by a hash of (`seed`, name); the first fifth, rounded but at
    least one, is "test", and the others are "train". A class of one shape is "train". The split is thus the same on any
    machine, and a new file changes it for few others. Of groups, whole ones are taken, by a hash of their names.

    Args:
        folder: the folder.
        seed: seed of the split by a hash.
        groups: see `DataOptions.groups`.
        labels: a table of files and labels, which may have splits and groups; folders may then be of any kind.
        without: a table of files to leave out.

    Returns:
        The listings by split.

    Warns:
        UserWarning: files are skipped, or rows of a table have no file.

    Raises:
        PointsetError: the layout is none of these, layouts or kinds of files are mixed, names collide, or a table
            cannot be used.
    """
    tree = scan_folder(folder, depth=DEPTH if labels is None else LABELED_DEPTH)
    rows = {} if labels is None else _keep_labeled(tree, labels)
    lists = _Lists.of(tree) if labels is None else None
    note_beside(tree)
    leave_out_copies(tree, notes=False)
    kind = _kind_of_files(tree)
    leave_out_copies(tree, notes=True)
    grouped = groups not in (None, NO_GROUPS)
    assigned = _by_folders(tree, lists, grouped) if labels is None else _by_table(tree, rows, labels)
    class_of, split_of, names = assigned.class_of, assigned.split_of, [*tree.files]
    if groups == NO_GROUPS:
        assigned.group_of = {}
    elif groups is not None:
        needed = {name for name in names if split_of.get(name, SPLITS[0]) == SPLITS[0]}
        assigned.group_of = groups_of(groups, names, folder, needed)
    is_hashed = not split_of
    if is_hashed:
        split_of = _splits_by_hash(class_of, assigned.group_of, seed)
        assigned.rule += f"a fifth of the files of each class is test, by a hash of their names and seed {seed}"
        assigned.rule += f", whole groups by {groups or labels}" if assigned.group_of else ""
    left_out = {} if without is None else rows_by_file("without", Path(without), folder, names)
    classes = natural_order({*class_of.values()})
    of_class = {name: label for label, name in enumerate(classes)}
    shapes = [
        ShapeFile(
            path,
            name,
            class_of[name],
            of_class[class_of[name]],
            split_of[name],
            assigned.group_of.get(name, ""),
            name in left_out,
        )
        for name, path in tree.files.items()
    ]
    shapes.sort(key=lambda shape: (shape.label, shape.name.split("/")))
    tree.warn_of_skipped()
    of_split = {split: [shape for shape in shapes if shape.split == split] for split in {*split_of.values()}}
    present = {split: frozenset(shape.label for shape in listed) for split, listed in of_split.items()}
    return {
        split: Listing(listed, classes, kind, folder, present, assigned.rule, is_hashed)
        for split, listed in of_split.items()
    }


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort names of classes: numbers by their values, such as 2 before 10, also within names."""
    try:
        return sorted(names, key=float)
    except ValueError:
        parts = {name: re.split(r"(\d+)", name) for name in names}
        keys = {name: [int(part) if part.isdecimal() else part for part in parts[name]] for name in parts}
        return sorted(parts, key=lambda name: (keys[name], name))


def groups_of(
    groups: str, names: Sequence[str], folder: Path, needed: Collection[str], *, complete: bool = True
) -> dict[str, str]:
    """The name of each file's group, as `DataOptions.groups` says; a file that is not needed may be alone.

    With `complete`, the names are those of all files, and rows of a table without a file are in a warning.

    Raises:
        PointsetError: `groups` cannot be used, or lacks the group of a file that is needed.
    """
    if is_table(groups):
        rows = rows_by_file("groups", Path(groups), folder, names, ("group",), complete=complete)
        group_of = {name: cells["group"] for name, cells in rows.items()}
    else:
        group_of = dict(zip(names, group_keys(groups, names), strict=True))
    if lacking := [name for name in names if name in needed and not group_of.get(name)]:
        raise PointsetError(
            f"groups={quoted(groups)} does not say the group of {quoted(lacking[0])}: give all shapes one"
        )
    return {name: group_of.get(name) or name for name in names}


def _keep_labeled(tree: FileTree, labels: str) -> dict[str, Cells]:
    """Keep the files that have a label in a table, and return its rows by file."""
    tree.files |= tree.beside
    tree.beside.clear()
    table = Path(labels) if Path(labels).exists() else tree.path / labels
    tree.files = {name: path for name, path in tree.files.items() if path.resolve() != table.resolve()}
    rows = rows_by_file("labels", table, tree.path, tree.files, ("label",))
    read = {suffix_of(name) for name in rows} | (SHAPE_SUFFIXES - LIST_SUFFIXES)
    without_row = [name for name in tree.files if name not in rows]
    notes = [name for name in without_row if suffix_of(name) not in read]
    tree.files = {name: path for name, path in tree.files.items() if name not in {*notes}}
    tree.skip(f"without a row in {table.name}", [name for name in without_row if name in tree.files])
    tree.skip(f"without a label in {table.name}", [name for name in rows if not rows[name]["label"]])
    return rows


def _by_table(tree: FileTree, rows: Mapping[str, Cells], labels: str) -> _Assignment:
    """Assign files as a table says."""
    used = {name: rows[name] for name in tree.files}
    split_of = {name: split_called(cells["split"]) for name, cells in used.items() if cells.get("split")}
    if split_of and (lacking := [name for name in used if name not in split_of]):
        raise PointsetError(f"labels={labels} has no split for {quoted(lacking[0])}: give all files one, or none")
    group_of = {name: cells.get("group") or name for name, cells in used.items()}
    group_of = group_of if any(cells.get("group") for cells in used.values()) else {}
    rule = f"labels of {labels}; " if not split_of else f"labels and splits of {labels}"
    return _Assignment({name: cells["label"] for name, cells in used.items()}, split_of, group_of, rule)


def _by_folders(tree: FileTree, lists: "_Lists | None", grouped: bool) -> _Assignment:
    """Assign files by the names of their folders, or by lists of splits beside these."""
    layout = _layout(tree, grouped=grouped)
    parts = {name: dict(zip(layout.split("/"), name.split("/"), strict=True)) for name in tree.files}
    split_of, rule = dict[str, str](), ""
    if "split" in layout:
        split_of, rule = _splits_by_folder(tree, {name: parts[name]["split"] for name in parts}), f"folders {layout}"
    elif lists is not None:
        tree.skip(f"that {lists} do not name", [name for name in parts if name not in lists.split_of])
        split_of, rule = {name: lists.split_of[name] for name in tree.files}, f"lists {lists}"
    return _Assignment({name: parts[name]["class"] for name in tree.files}, split_of, {}, rule)


@dataclass(frozen=True)
class _Lists:
    """Lists of the files of each split, such as modelnet40_train.txt and modelnet40_test.txt."""

    names: tuple[str, ...]
    split_of: dict[str, str]

    def __str__(self) -> str:
        return " and ".join(self.names)

    @classmethod
    def of(cls, tree: FileTree) -> "_Lists | None":
        """The lists beside the folders that name the most files, if these are most of all; they are no notes then."""
        by_prefix: dict[str, dict[str, str]] = defaultdict(dict)
        for name in tree.beside:
            prefix, _, last = name.rpartition(".")[0].rpartition("_")
            if suffix_of(name) == ".txt" and _are_splits([last]):
                by_prefix[prefix][split_called(last)] = name
        best, match = cls((), {}), matcher(tree.path, tree.path, tree.files)
        for of_split in by_prefix.values():
            split_of: dict[str, str] = {}
            for split, name in of_split.items() if {*SPLITS} <= of_split.keys() else ():
                for line in read_text(tree.beside[name]).splitlines():
                    if (file := match(line.strip())) and split_of.setdefault(file, split) != split:
                        raise PointsetError(f"{tree.path}: {' and '.join(of_split.values())} both name {quoted(file)}")
            if len(split_of) > len(best.split_of):
                best = cls(tuple(of_split[split] for split in of_split), split_of)
        if 2 * len(best.split_of) <= len(tree.files):
            return None
        for name in best.names:
            del tree.beside[name]
        return best


def _kind_of_files(tree: FileTree) -> FileKind:
    """The kind of all files; text files beside meshes are notes, and removed."""
    meshes, clouds, files = by_kind(tree.files)
    folders = {name.rpartition("/")[0] for name in files}
    alone = {name: path for name, path in tree.files.items() if name.rpartition("/")[0] not in folders}
    if meshes and any(map(may_hold_cloud, alone.values())):  # classes of text clouds would be lost
        clouds, files = clouds + list(alone.values()), files | alone
    if meshes and clouds:
        count = sum(map(is_mesh_file, files.values()))
        mesh, cloud = (path.relative_to(tree.path).as_posix() for path in (meshes[0], clouds[0]))
        raise PointsetError(
            f"{tree.path} mixes meshes ({count:,}, such as {mesh}) and point clouds ({len(files) - count:,}, such as "
            f"{cloud}): keep them in two folders"
        )
    tree.files = files
    return "meshes" if meshes or not files else "clouds"


def split_called(name: str) -> str:
    """The split of a folder's name: train for Train, TRAIN and Training; other names are returned unchanged."""
    match = SPLIT_FOLDERS.fullmatch(name.casefold())
    return next(split for split, word in match.groupdict().items() if word) if match else name


def list_shapes(folder: Path) -> list[ShapeFile]:
    """List the shape files in a folder of any of the three layouts, or in one without subfolders, by name.

    The class of a file is the first folder in its path that is not named like a split. Unlike in a dataset, meshes and
    clouds may be mixed; text files beside meshes are taken for notes. Warnings and errors are those of `list_folder`.
    """
    tree = scan_folder(folder, loose=True)
    by_folder: dict[str, dict[str, Path]] = defaultdict(dict)
    for name, path in tree.files.items():
        by_folder[name.rpartition("/")[0]][name] = path
    shapes = []
    for inside, files in by_folder.items():
        true_class = next((name for name in inside.split("/") if not _are_splits([name])), "")
        shapes += [ShapeFile(path, name, true_class) for name, path in by_kind(files)[2].items()]
    if not shapes:
        raise PointsetError(f"{folder} {_nothing_in(tree, folder)}; expected {SHAPE_TYPES}")
    tree.notes = [(reason, path) for reason, path in tree.notes if reason != TABLES]  # such as written predictions
    tree.warn_of_skipped()
    return sorted(shapes, key=lambda shape: shape.name)


def _layout(tree: FileTree, *, grouped: bool) -> str:
    """The layout of a folder; a PointsetError if it is none of the three, or has a class without shapes.

    With `grouped`, folders in a class may hold several shapes of one object.
    """
    tops = [folder for folder in tree.folders if "/" not in folder]
    loose = sum("/" not in name for name in tree.files)
    loose += sum(reason == BESIDE_SHAPES for reason, _ in tree.notes) * (not tops)
    if not tops or loose:
        where = f"beside {counted(len(tops), 'folder')}" if tops else "in no folder"
        content = f"{counted(loose, 'mesh or cloud file')} {where}" if loose else "no folder in it"
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {content}{_further(tree)}; {LAYOUTS}")
    direct, nested = ([name for name in tree.files if name.count("/") == depth] for depth in (1, 2))
    inner = {folder.split("/")[1] for folder in tree.folders if "/" in folder}
    splits_first = _are_splits(tops) and not (inner and _are_splits(inner))
    if direct and (nested or splits_first):
        other = f" beside {nested[0]}" if nested else ""
        raise PointsetError(f"{tree.path} is not in a known layout: found {direct[0]}{other}; {LAYOUTS}")
    _note_empty_classes(tree, inner if splits_first else {*tops}, splits_first)
    if splits_first or not nested:
        return "split/class/file" if splits_first else "class/file"
    alone = not _are_splits(inner) and len({name.rpartition("/")[0] for name in nested}) == len(nested)
    objects = grouped and not any(_are_splits([name]) for name in inner)
    return "class/shape/file" if alone or objects else "class/split/file"


def _note_empty_classes(tree: FileTree, classes: set[str], splits_first: bool) -> None:
    """Note classes without a shape; a PointsetError if all are, or if the shapes of one are too deep."""
    filled = {name.split("/")[int(splits_first)] for name in tree.files}
    for class_name in sorted(classes - filled):
        folders = sorted(tree.path.glob(f"*/{glob.escape(class_name)}")) if splits_first else [tree.path / class_name]
        if not filled or TOO_DEEP in tree.noted(*folders):
            raise PointsetError(f"class {quoted(class_name)} of {tree.path} {_nothing_in(tree, *folders)}; {LAYOUTS}")
        tree.notes += [(EMPTY, folder) for folder in folders]


def _are_splits(names: Iterable[str]) -> bool:
    return all(SPLIT_FOLDERS.fullmatch(name.casefold()) for name in names)


def _nothing_in(tree: FileTree, *folders: Path) -> str:
    """The part of a message about folders without shapes."""
    if paths := tree.noted(*folders).get(TOO_DEEP):
        return f"holds shapes in too deeply nested folders, the first is {quoted(paths[0])}: move them up"
    return f"holds no mesh and no point cloud{_further(tree, *folders)}"


def _further(tree: FileTree, *folders: Path) -> str:
    """The part of a message that says which files are not read."""
    texts = [f"; {text}" for text in tree.skipped(*(folders or (tree.path,))) if not text.endswith(BESIDE_SHAPES)]
    return "".join(texts) + RELEASES * any(".h5," in text or ".hdf5," in text for text in texts)


def _splits_by_folder(tree: FileTree, folders: dict[str, str]) -> dict[str, str]:
    """The split of each shape, by its folder; a PointsetError for two names of one split, such as train and Train."""
    folder_of: dict[str, str] = {}
    for folder in sorted({*folders.values()}, key=lambda name: ("eval" in name.casefold(), name)):
        split = split_called(folder)
        if "eval" in folder.casefold() and split in folder_of:  # beside test, it is a split of its own
            split = folder
        other = folder_of.setdefault(split, folder)
        if other != folder:
            raise PointsetError(f"{tree.path} has the splits {quoted(folder)} and {quoted(other)}: give both one name")
    split_of = {folder: split for split, folder in folder_of.items()}
    return {name: split_of[folder] for name, folder in folders.items()}


def _splits_by_hash(class_of: dict[str, str], group_of: dict[str, str], seed: int) -> dict[str, str]:
    """The split of each shape, by its class and the hash of its group, or of its own name."""
    groups = [group_of.get(name, name) for name in class_of]
    digests = [sha256(f"{seed}/{group}".encode()).digest() for group in groups]
    order = sorted(range(len(groups)), key=digests.__getitem__)
    tested = hold_out(groups, [*class_of.values()], order, lambda size: max(1, round(TEST_SHARE * size)))
    return {name: SPLITS[group in tested] for name, group in zip(class_of, groups, strict=True)}
