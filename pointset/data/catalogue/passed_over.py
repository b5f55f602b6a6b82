"""Files of shapes that the listing of a folder does not take, so that none is dropped without a word."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pointset.data.catalogue.branches import Branch
from pointset.data.files.clouds import CloudError
from pointset.data.files.file_kinds import is_shape_file, suffix_of
from pointset.data.files.scans import open_scan
from pointset.errors import quoted

HEAD = 1 << 16
"""Bytes of a text that are looked at."""


def warn_of_passed_over(tree: Branch) -> None:
    """Warn, once for a folder, of shapes that lie too deep, of clouds beside its folders, and of formats not read.

    Of text and arrays only those count that can be clouds: lists of names and arrays of labels lie beside many a data
    set's folders.

    Warns:
        UserWarning: there are some; their number, the first of them and what to do are said.
    """
    deep = list(deep_files(tree.walk()))
    beside = [path for path in tree.beside if may_hold_cloud(path)]
    found = _told(deep, "more than two folders deep", "move them up", tree.path)
    found += _told(beside, "beside folders of shapes", "move them into a folder", tree.path)
    unread = [path for branch in tree.walk() for path in branch.unread]
    found += _told(unread, "of formats that are not read", "unpack or convert them", tree.path)
    if found:
        warnings.warn(
            f"{tree.path} has files of shapes that are skipped: {' and '.join(found)}",
            UserWarning,
            stacklevel=6,  # the caller of load_dataset
        )


def deep_files(branches: Iterable[Branch]) -> Iterator[Path]:
    """Files that may hold shapes in the folders that are not looked into, each folder's by name."""
    return (path for branch in branches for folder in branch.deeper for path in _files_below(folder))


def clouds_in_text(branches: Iterable[Branch]) -> Iterator[Path]:
    """Files of text that may hold clouds, whether they were taken for notes or not."""
    texts = (path for branch in branches for path in sorted(branch.path.iterdir()) if suffix_of(path.name) == ".txt")
    return (path for path in texts if is_shape_file(path.name, at_top=False) and may_hold_cloud(path))


def may_hold_cloud(path: Path) -> bool:
    """Whether an array can be read as a cloud, and whether a text begins with a line of numbers."""
    if not path.is_file():
        return False
    try:
        if suffix_of(path.name) == ".txt":
            with path.open("rb") as file:
                return _begins_with_numbers(file.read(HEAD))
        open_scan(path)
    except (CloudError, OSError):
        return False
    return True


def _begins_with_numbers(head: bytes) -> bool:
    lines = (re.split(rb"#|//", line)[0].strip() for line in head.splitlines())
    words = re.split(rb"[\s,;]+", next(filter(None, lines), b""))
    try:
        return len([float(word) for word in words if word]) >= 3
    except ValueError:
        return False


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(name for name in files if not _is_hidden(name) and is_shape_file(name, at_top=False)):
            path = Path(place, name)
            checked = suffix_of(name) in (".txt", ".npy", ".npz")
            if may_hold_cloud(path) if checked else path.is_file():
                yield path


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX"))


def _told(files: Sequence[Path], where: str, remedy: str, folder: Path) -> list[str]:
    if not files:
        return []
    count = f"{len(files):,} file{'s' * (len(files) > 1)}"
    return [f"{count} {where}, the first {quoted(files[0].relative_to(folder))} ({remedy})"]
