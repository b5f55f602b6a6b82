"""Splits of a folder of shapes: by the names of folders, by lists of files, or by a hash of the names."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256

from pointset.data.catalogue.file_tables import matcher, read_text
from pointset.data.catalogue.scan import FileTree
from pointset.data.groups import hold_out
from pointset.data.options import SPLITS
from pointset.data.readers.formats import suffix_of
from pointset.errors import PointsetError, quoted

TEST_SHARE = 0.2
"""Share of test shapes in a folder without splits."""
SPLIT_FOLDERS = re.compile(
    r"(\d+[-_ ]?)?((?P<train>train(ing)?|trn)|(?P<test>test(ing)?|tst|eval(uation)?)|"
    r"(?P<validation>val(id(ation)?)?|dev))([-_ ]?(set|split|data))?"
)
"""Names of folders of splits, in lower case, which distinguish split/class/file from class/split/file."""


def are_splits(names: Iterable[str]) -> bool:
    """Return True if all names are those of splits, in any spelling."""
    return all(SPLIT_FOLDERS.fullmatch(name.casefold()) for name in names)


def split_called(name: str) -> str:
    """Return the split of a folder's name: train for Train, TRAIN and Training; other names are returned unchanged."""
    match = SPLIT_FOLDERS.fullmatch(name.casefold())
    return next(split for split, word in match.groupdict().items() if word) if match else name


def splits_by_folder(tree: FileTree, folders: dict[str, str]) -> dict[str, str]:
    """Return the split of each shape by its folder; a PointsetError for two names of one split: train and Train."""
    folder_of: dict[str, str] = {}
    for folder in sorted({*folders.values()}, key=lambda name: ("eval" in name.casefold(), name)):
        split = split_called(folder)
        if "eval" in folder.casefold() and split in folder_of:  # beside test, eval is another split
            split = folder
        other = folder_of.setdefault(split, folder)
        if other != folder:
            raise PointsetError(f"{tree.path} has the splits {quoted(folder)} and {quoted(other)}: give both one name")
    split_of = {folder: split for split, folder in folder_of.items()}
    return {name: split_of[folder] for name, folder in folders.items()}


def splits_by_hash(class_of: Mapping[str, str], group_of: Mapping[str, str], seed: int) -> dict[str, str]:
    """Return the split of each shape, by its class and the hash of its group or, without groups, of its name."""
    groups = [group_of.get(name, name) for name in class_of]
    digests = [sha256(f"{seed}/{group}".encode()).digest() for group in groups]
    order = sorted(range(len(groups)), key=digests.__getitem__)
    tested = hold_out(groups, [*class_of.values()], order, lambda size: max(1, round(TEST_SHARE * size)))
    return {name: SPLITS[group in tested] for name, group in zip(class_of, groups, strict=True)}


def splits_by_lists(tree: FileTree) -> tuple[str, dict[str, str]]:
    """Return the split of each file by lists beside the folders, such as modelnet40_train.txt and modelnet40_test.txt.

    Of several lists, those that name the most files are used, if these are most of all files.

    Returns:
        The names of the lists, and the splits by file; both are empty without lists.

    Raises:
        PointsetError: two of the lists name one file.
    """
    by_prefix: dict[str, dict[str, str]] = defaultdict(dict)
    for name in tree.beside:
        prefix, _, last = name.rpartition(".")[0].rpartition("_")
        if suffix_of(name) == ".txt" and are_splits([last]):
            by_prefix[prefix][split_called(last)] = name
    lists, best = list[str](), dict[str, str]()
    match = matcher(tree.path, tree.path, tree.files if by_prefix else ())
    for of_split in by_prefix.values():
        split_of: dict[str, str] = {}
        for split, name in of_split.items() if {*SPLITS} <= of_split.keys() else ():
            for line in read_text(tree.beside[name]).splitlines():
                if (file := match(line.strip())) and split_of.setdefault(file, split) != split:
                    raise PointsetError(f"{tree.path}: {' and '.join(of_split.values())} both name {quoted(file)}")
        if len(split_of) > len(best):
            lists, best = [*of_split.values()], split_of
    if 2 * len(best) <= len(tree.files):
        return "", {}
    for name in lists:
        del tree.beside[name]
    return " and ".join(lists), best
