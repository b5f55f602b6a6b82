"""List the shapes in a folder laid out as class/split/file (as ModelNet), split/class/file or class/file.

Files are scanned by name; those that are skipped are named in a warning.
"""

import os
import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np

from pointset.data.groups import NO_GROUPS, choose_groups, group_keys, number_groups
from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import (
    CLOUD_SUFFIXES,
    MESH_SUFFIXES,
    NOTE_SUFFIXES,
    FileKind,
    content_by_name,
    is_mesh_file,
    require_library,
    suffix_of,
)
from pointset.data.readers.reading import read_columns
from pointset.errors import REPEATED, PointsetError, counted, one_line, quoted

FORMATS = [".off", ".obj", *sorted(MESH_SUFFIXES - {".off", ".obj"}), *sorted(CLOUD_SUFFIXES - MESH_SUFFIXES)]
"""Suffixes in the order in which one of several files of a shape is chosen."""
TABLE_HEAD = 2048
"""Bytes of a text file in which names of shapes are looked for."""
DEPTH = 2
"""Levels of subfolders that are scanned."""
HIDDEN_FILES = (".", "__", "@", "~$", "$RECYCLE")
"""First characters of the names of files and folders that are ignored: of systems, of caches and of office programs."""
TOO_DEEP = "more than two folders deep", "move them up"
OBJECTS_IN_FOLDERS = "; if each folder has several shapes of one object, `train` and `compare` read it with --groups 2"
BESIDE_SHAPES = "beside folders of shapes", "move them into a folder"
UNREAD = "of formats that are not read", "unpack or convert them"
PIPES = "that are pipes or devices", "save their content to files"
EMPTY = "without a mesh or a point cloud", "they do not count as classes"
COPIES = "of shapes that are there in another format", "each shape counts once"
TABLES = "with names of shapes, which is not read", "classes are the names of folders"
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
LAYOUTS = f"expected class/split/file, split/class/file or class/file, with {SHAPE_TYPES}"


@dataclass(frozen=True)
class ShapeFile:
    """One file with a mesh or a point cloud."""

    path: Path
    name: str
    """Path relative to the given folder, such as "chair/train/chair_0001.off"; or the given path of a file."""
    true_class: str = ""
    """Class according to its folder; empty if unknown."""
    label: int = -1
    """Index of the class in its dataset; -1 outside of a dataset."""
    split: str = ""


@dataclass(frozen=True)
class Listing:
    """The shapes of one split."""

    shapes: list[ShapeFile]
    classes: list[str]
    """Classes of the whole folder, sorted; labels are indices into them."""
    kind: FileKind
    """Kind of all files of the folder."""
    folder: Path
    """The folder, to which the shapes' names are relative."""
    present: dict[str, frozenset[int]]
    """The labels that have shapes, by split."""
    rule: str
    """How shapes are assigned to splits, as text."""
    is_hashed: bool
    """True if they are by a hash of their names, and not by folders."""


@dataclass
class FileTree:
    """The shape files in a folder, by paths relative to it, such as "chair/train/1.off", in Unicode's composed form."""

    path: Path
    files: dict[str, Path] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    """Subfolders, also those without shape files."""
    beside: dict[str, Path] = field(default_factory=dict)
    """Text files and arrays in the folder itself, which may be clouds or lists."""
    skipped: dict[tuple[str, str], list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Shape files that are not used, by reason and what to do, such as `TOO_DEEP`."""

    def warn_of_skipped(self) -> None:
        """Warn once of shape files that are skipped, with their number, the first of them and what to do."""
        reasons = [
            f"{len(paths):,} {'folder' if reason in EMPTY else 'file'}{'s' * (len(paths) > 1)} {reason}, the first "
            f"{quoted(paths[0].relative_to(self.path))} ({remedy})"
            for (reason, remedy), paths in self.skipped.items()
            if paths
        ]
        if reasons:
            told = f"{self.path} has files that are skipped: {' and '.join(reasons)}"
            warnings.warn(told, UserWarning, stacklevel=7)  # the caller of load_dataset


def list_folder(folder: Path, split: str, *, seed: int = 0, groups: str | None = None) -> Listing:
    """List the shapes of one split; see `list_splits`."""
    listings = list_splits(folder, seed=seed, groups=groups)
    name = split if split in listings else split_called(split)
    if name not in listings:
        known = one_line(", ".join(sorted(listings)), REPEATED)
        advice = "" if any(_are_splits([each]) for each in listings) else OBJECTS_IN_FOLDERS
        if groups is not None and any(listing.is_hashed for listing in listings.values()):
            advice = f"; in each class all shapes are one group by groups={quoted(groups)}, and a test asks for two"
        raise PointsetError(f"{folder} has no shape in split {quoted(split)}: found {known}{advice}")
    return listings[name]


def list_to_look(folder: Path, *, seed: int = 0) -> dict[str, Listing]:
    """The splits of a folder to look at; if no folder in its classes is a split, they are objects of several shapes."""
    listings = list_splits(folder, seed=seed)
    return listings if any(_are_splits([name]) for name in listings) else list_splits(folder, seed=seed, groups="2")


def list_splits(folder: Path, *, seed: int = 0, groups: str | None = None) -> dict[str, Listing]:
    """List the shapes of each split of a folder, by class and then by name.

    Hidden files, files that are neither meshes nor clouds, and text files beside meshes (notes) are skipped. Names are
    in Unicode's composed form (NFC). The splits train, test and validation may be called in other ways, such as
    Training, 1_train, trn, eval or dev. Of files that differ in their suffix alone, one is listed. Folders in a class
    that are not called like splits are shapes, if they have one file each, or objects of several files with `groups`.

    A class/file folder is split by a rule: within each class, files are ordered by a hash of (`seed`, name); the first
    fifth, rounded but at least one, is "test", and the others are "train". A class of one shape is "train". The split
    is thus the same on any machine, and a new file changes it for few others. Of `groups` (see `group_keys`), whole
    ones are taken, by a hash of their names.

    Warns of shapes that are skipped, with the reason. A PointsetError says what was found if the
    layout is none of these, layouts or kinds of files are mixed, or names collide.
    """
    groups = None if groups == NO_GROUPS else groups
    tree = _scan_folder(folder)
    _leave_out_copies(tree, {name for name in tree.files if suffix_of(name) not in NOTE_SUFFIXES})
    kind = _kind_of_files(tree)
    _leave_out_copies(tree, {*tree.files})
    layout = _layout(tree, grouped=groups is not None)
    parts = {name: dict(zip(layout.split("/"), name.split("/"), strict=True)) for name in tree.files}
    class_of = {name: own["class"] for name, own in parts.items()}
    rule = f"a fifth of the files of each class is test, by a hash of their names and seed {seed}"
    if "split" in layout:
        rule, split_of = f"folders {layout}", _splits_by_folder(tree, {name: parts[name]["split"] for name in parts})
    else:
        keys = dict(zip(class_of, class_of if groups is None else group_keys(groups, [*class_of], folder), strict=True))
        split_of = _splits_by_rule(class_of, keys, seed)
        rule += f", whole groups by {groups}" if groups is not None else ""
    classes = sorted({*class_of.values()})
    listed = [
        ShapeFile(tree.files[name], name, class_of[name], classes.index(class_of[name]), split_of[name])
        for name in sorted(tree.files, key=lambda name: (class_of[name], split_of[name], name.split("/")))
    ]
    tree.warn_of_skipped()
    of_split = {name: [shape for shape in listed if shape.split == name] for name in {*split_of.values()}}
    present = {name: frozenset(shape.label for shape in shapes) for name, shapes in of_split.items()}
    hashed = "split" not in layout
    return {name: Listing(shapes, classes, kind, folder, present, rule, hashed) for name, shapes in of_split.items()}


def _kind_of_files(tree: FileTree) -> FileKind:
    """The kind of all files; text files beside meshes are notes, and removed."""
    meshes, clouds, files = _by_kind(tree.files)
    folders = {name.rpartition("/")[0] for name in files}
    alone = {name: path for name, path in tree.files.items() if name.rpartition("/")[0] not in folders}
    if meshes and any(map(_may_hold_cloud, alone.values())):  # classes of text clouds would be lost
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


def _by_kind(files: dict[str, Path]) -> tuple[list[Path], list[Path], dict[str, Path]]:
    """The first mesh or cloud of each type, and the files without notes, which are text beside meshes."""
    shapes = {name: path for name, path in files.items() if suffix_of(name) not in NOTE_SUFFIXES}
    first = {suffix_of(name): path for name, path in reversed(shapes.items())}
    meshes = [path for path in reversed(first.values()) if is_mesh_file(path)]
    return meshes, [path for path in reversed(first.values()) if path not in meshes], shapes if meshes else files


def split_called(name: str) -> str:
    """The split of a folder's name: train for Train, TRAIN and Training; other names are returned unchanged."""
    match = SPLIT_FOLDERS.fullmatch(name.casefold())
    return next(split for split, word in match.groupdict().items() if word) if match else name


def list_shapes(folder: Path) -> list[ShapeFile]:
    """List the shape files in a folder of any of the three layouts, or in one without subfolders, by name.

    The class of a file is the first folder in its path that is not named like a split. Unlike in a dataset, meshes and
    clouds may be mixed; text files beside meshes are taken for notes. Warnings and errors are those of `list_folder`.
    """
    tree = _scan_folder(folder, loose=True)
    by_folder: dict[str, dict[str, Path]] = defaultdict(dict)
    for name, path in tree.files.items():
        by_folder[name.rpartition("/")[0]][name] = path
    shapes = []
    for inside, files in by_folder.items():
        true_class = next((name for name in inside.split("/") if not _are_splits([name])), "")
        shapes += [ShapeFile(path, name, true_class) for name, path in _by_kind(files)[2].items()]
    if not shapes:
        raise PointsetError(f"{folder} {_nothing_in(tree, folder)}; expected {SHAPE_TYPES}")
    tree.skipped.pop(TABLES, None)  # such as the predictions that a command wrote there
    tree.warn_of_skipped()
    return sorted(shapes, key=lambda shape: shape.name)


def _layout(tree: FileTree, *, grouped: bool) -> str:
    """The layout of a folder; a PointsetError if it is none of the three, or has a class without shapes.

    With `grouped`, folders in a class may hold several shapes of one object.
    """
    tops = [folder for folder in tree.folders if "/" not in folder]
    loose = sum("/" not in name for name in tree.files) + len(tree.skipped[BESIDE_SHAPES]) * (not tops)
    if not tops or loose:
        where = f"beside {counted(len(tops), 'folder')}" if tops else "in no folder"
        content = f"{counted(loose, 'mesh or cloud file')} {where}" if loose else "no folder in it"
        unread = [path.name for reason in (TABLES, UNREAD) for path in tree.skipped[reason]]
        content += f", and {quoted(unread[0])}, which is not read" if unread else ""
        raise PointsetError(f"{tree.path} is not a dataset of shapes: found {content}; {LAYOUTS}")
    direct, nested = ([name for name in tree.files if name.count("/") == depth] for depth in (1, 2))
    inner = {folder.split("/")[1] for folder in tree.folders if "/" in folder}
    splits_first = _are_splits(tops) and not (inner and _are_splits(inner))
    if direct and (nested or splits_first):
        other = f" beside {nested[0]}" if nested else ""
        raise PointsetError(f"{tree.path} is not in a known layout: found {direct[0]}{other}; {LAYOUTS}")
    filled = {name.split("/")[int(splits_first)] for name in tree.files}
    for class_name in sorted((inner if splits_first else {*tops}) - filled):
        folders = [path for top in tops if (path := tree.path / top / class_name).is_dir()]
        folders = folders if splits_first else [tree.path / class_name]
        if not filled or any(path.is_relative_to(folder) for path in tree.skipped[TOO_DEEP] for folder in folders):
            raise PointsetError(f"class {quoted(class_name)} of {tree.path} {_nothing_in(tree, *folders)}; {LAYOUTS}")
        tree.skipped[EMPTY] += folders
    if splits_first or not nested:
        return "split/class/file" if splits_first else "class/file"
    alone = not _are_splits(inner) and len({name.rpartition("/")[0] for name in nested}) == len(nested)
    objects = grouped and not any(_are_splits([name]) for name in inner)
    return "class/shape/file" if alone or objects else "class/split/file"


def _are_splits(names: Iterable[str]) -> bool:
    return all(SPLIT_FOLDERS.fullmatch(name.casefold()) for name in names)


def _nothing_in(tree: FileTree, *folders: Path) -> str:
    """The part of a message about folders without shapes."""
    inside = {
        reason: [path for path in paths if any(path.is_relative_to(folder) for folder in folders)]
        for reason, paths in tree.skipped.items()
    }
    if paths := inside.get(TOO_DEEP):
        return f"holds shapes in too deeply nested folders, the first is {quoted(paths[0])}: move them up"
    found = [f"; it has {len(paths):,} {why}, as {quoted(paths[0])}" for (why, _), paths in inside.items() if paths]
    return "holds no mesh and no point cloud" + "".join(found)


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


def _splits_by_rule(class_of: dict[str, str], group_of: dict[str, str], seed: int) -> dict[str, str]:
    """The split of each shape, by its class and the hash of its group, which may be its own name."""
    by_class, splits = defaultdict[str, list[str]](list), dict[str, str]()
    for name, class_name in class_of.items():
        by_class[class_name].append(name)
    for names in by_class.values():
        groups = number_groups(group_of[name] for name in names)
        by_hash = sorted(range(len(names)), key=lambda row: sha256(f"{seed}/{group_of[names[row]]}".encode()).digest())
        count = max(1, round(TEST_SHARE * len(names))) if len(names) > 1 else 0
        tested = {*choose_groups(np.array(by_hash, np.int64), groups, count).tolist()}
        splits |= {name: "test" if row in tested else "train" for row, name in enumerate(names)}
    return splits


def _scan_folder(folder: Path, *, loose: bool = False) -> FileTree:
    """Scan a folder; with `loose`, text files and arrays at the top are shapes, too, unless files lie in folders."""
    tree = FileTree(folder)
    try:
        _scan(tree, folder, "")
        _leave_out_tables(tree)
        if loose and not any("/" in name for name in tree.files):
            tree.files |= tree.beside
        else:
            tree.skipped[BESIDE_SHAPES] = [path for path in tree.beside.values() if _may_hold_cloud(path)]
    except PermissionError as error:
        raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
    tree.files = dict(sorted(tree.files.items(), key=lambda item: item[0].split("/")))
    for suffix in sorted({suffix_of(name) for name in tree.files}):
        try:
            require_library(suffix)
        except PointsetError as error:  # said once for all files
            tree.skipped[f"that cannot be read ({error})", "they are left out"] = [
                tree.files.pop(name) for name in [*tree.files] if suffix_of(name) == suffix
            ]
    return tree


def _leave_out_copies(tree: FileTree, names: Set[str]) -> None:
    """Of files that differ in their suffix alone, keep the first by the order of `FORMATS`."""
    by_stem: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_stem[name.rpartition(".")[0]].append(name)
    for same in by_stem.values():
        for name in sorted(same, key=lambda name: (FORMATS.index(suffix_of(name)), name))[1:]:
            tree.skipped[COPIES].append(tree.files.pop(name))
    tree.skipped[COPIES].sort()


def _leave_out_tables(tree: FileTree) -> None:
    """Leave out text files beside shapes that list their names, such as predictions or an index of classes."""
    names = {path.name for path in (*tree.files.values(), *tree.beside.values())}
    for name, path in [*tree.beside.items()]:
        if suffix_of(name) in NOTE_SUFFIXES and path.is_file():
            with path.open("rb") as file:
                words = re.split(r'[\s,;"/\\]+', file.read(TABLE_HEAD).decode("utf-8", "replace"))
            if not names.isdisjoint(words):
                tree.skipped[TABLES].append(tree.beside.pop(name))


def _scan(tree: FileTree, folder: Path, inside: str) -> None:
    depth = inside.count("/")
    unread, stems = list[Path](), set[str]()
    for name, entry in _entries(folder):
        path, content = Path(entry.path), content_by_name(name)
        if path.is_dir():
            if entry.is_symlink() and (depth >= DEPTH or folder.resolve().is_relative_to(path.resolve())):
                continue
            if depth < DEPTH:
                tree.folders.append(inside + name)
            _scan(tree, path, f"{inside}{name}/")
        elif path.exists() and not path.is_file():  # a pipe or a device; reading a dangling link reports an error
            tree.skipped[PIPES] += [path] if content else []
        elif not content:
            continue
        elif content == "unread":
            unread.append(path)
        elif depth > DEPTH:
            if content == "shape" or _may_hold_cloud(path):
                tree.skipped[TOO_DEEP].append(path)
        else:
            files = tree.files if content == "shape" or depth else tree.beside
            files[inside + name] = path
            stems.add(Path(name).stem)
    # Copies of read files do not count: next to chair.off, neither chair.fbx nor chair.off.gz.
    if depth <= DEPTH and (depth or not stems):
        tree.skipped[UNREAD] += [path for path in unread if stems.isdisjoint((path.stem, Path(path.stem).stem))]


def _entries(folder: Path) -> list[tuple[str, "os.DirEntry[str]"]]:
    """The visible entries with their NFC names, sorted; a PointsetError for a name that cannot be saved in results."""
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(HIDDEN_FILES)]
    named: dict[str, os.DirEntry[str]] = {}
    for entry in visible:
        name = unicodedata.normalize("NFC", entry.name)
        if not name.isprintable() and re.search("[\ud800-\udfff]", name):
            raise PointsetError(f"{folder} holds {quoted(os.fsencode(name))}, a name that is not UTF-8: rename it")
        if named.setdefault(name, entry) is not entry:
            raise PointsetError(f"{folder} holds two entries called {quoted(name)}, in two Unicode forms: rename one")
    return sorted(named.items())


def _may_hold_cloud(path: Path) -> bool:
    """True if a text file or an array can be read as a cloud: others are lists of names and arrays of labels."""
    try:
        read_columns(path)
    except CloudError:
        return False
    return True
