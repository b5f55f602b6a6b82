"""Split the shapes of a folder by the names of subfolders, by lists of files, or by a hash of file names."""

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from pointset.data.catalogue.file_tables import matcher
from pointset.data.catalogue.scan import FileTree
from pointset.data.options import SPLITS
from pointset.data.readers.formats import read_text
from pointset.data.splitting import hold_out
from pointset.errors import PointsetError, quoted

KNOWN_SPLITS = (*SPLITS, "validation")
TEST_SHARE = 0.2
"""Share of test shapes in a folder without splits."""
SPLIT_FOLDERS = re.compile(
    r"(\d+[-_ ]?)?((?P<train>train(ing)?|trn)|(?P<test>test(ing)?|tst|eval(uation)?)|"
    r"(?P<validation>val(id(ation)?)?|dev))([-_ ]?(set|split|data))?"
)
"""Names of split folders, in lower case; they distinguish split/class/file from class/split/file."""


def are_splits(names: Iterable[str]) -> bool:
    """Return True if all names match `SPLIT_FOLDERS`, in any letter case."""
    return all(SPLIT_FOLDERS.fullmatch(name.casefold()) for name in names)


def split_called(name: str) -> str:
    """Return the split of a folder name: train for Train, TRAIN or Training; any other name is returned unchanged."""
    match = SPLIT_FOLDERS.fullmatch(name.casefold())
    return next(split for split, word in match.groupdict().items() if word) if match else name


def splits_by_folder(tree: FileTree, folders: dict[str, str]) -> dict[str, str]:
    """Return the split of each shape by its folder; raise a PointsetError if a split has two names (train, Train)."""
    folder_of: dict[str, str] = {}
    for folder in sorted({*folders.values()}):
        if (other := folder_of.setdefault(split_called(folder), folder)) != folder:
            raise PointsetError(f"{tree.path} has the splits {quoted(folder)} and {quoted(other)}: give both one name")
    return {name: split_called(folder) for name, folder in folders.items()}


def splits_by_hash(class_of: Mapping[str, str], group_of: Mapping[str, str], seed: int) -> dict[str, str]:
    """Return the split of each shape by a hash of its group or, without groups, its name. A fifth per class is test."""
    groups = [group_of.get(name, name) for name in class_of]
    digests = [sha256(f"{seed}/{group}".encode()).digest() for group in groups]
    order = sorted(range(len(groups)), key=digests.__getitem__)
    tested = hold_out(groups, [*class_of.values()], order, lambda size: max(1, round(TEST_SHARE * size)))
    return {name: SPLITS[group in tested] for name, group in zip(class_of, groups, strict=True)}


def splits_by_lists(tree: FileTree) -> tuple[str, dict[str, str]]:
    """Return the split of each file by lists next to the folders, such as modelnet40_train.txt and modelnet40_test.txt.

    Of several pairs of lists, the pair that names the most files is used. It must name more than half of all files.

    Returns:
        The names of the two lists, and the splits by file; both are empty if no lists are used.

    Raises:
        PointsetError: both lists of a pair name the same file.
    """
    best = list[str](), dict[str, str]()
    for train in [name for name in tree.beside if name.endswith("_train.txt")]:
        lists, split_of = [train, train.removesuffix("train.txt") + "test.txt"], dict[str, str]()
        match = matcher(tree.path, tree.path, tree.files)
        for split, name in zip(SPLITS, lists, strict=True) if lists[1] in tree.beside else ():
            for line in read_text(tree.beside[name]).splitlines():
                if (file := match(line.strip())) and split_of.setdefault(file, split) != split:
                    raise PointsetError(f"{tree.path}: {' and '.join(lists)} both name {quoted(file)}")
        best = max(best, (lists, split_of), key=lambda pair: len(pair[1]))
    lists, split_of = best
    if 2 * len(split_of) <= len(tree.files):
        return "", {}
    for name in lists:
        del tree.beside[name]
    return " and ".join(lists), split_of
