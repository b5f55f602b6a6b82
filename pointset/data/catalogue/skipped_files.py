"""Find the shape files that the listing of a folder skips, and warn of them."""

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pointset.data.catalogue.file_tree import Branch
from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import NOTE_SUFFIXES, is_shape_file, suffix_of
from pointset.data.readers.scans import open_scan
from pointset.errors import quoted

HEAD = 1 << 16
"""Bytes of a text file that are examined."""


def warn_of_passed_over(tree: Branch) -> None:
    """Warn once of shapes in too deep folders, of clouds beside the folders, and of unsupported formats.

    Text files and arrays count only if they can be clouds, because many datasets have lists of names and arrays of
    labels beside their folders.

    Warns:
        UserWarning: there are such files; the message has their number, the first of them and what to do.
    """
    deep = list(deep_files(tree.walk()))
    beside = [path for path in tree.beside if may_hold_cloud(path)]
    found = _summary(deep, "more than two folders deep", "move them up", tree.path)
    found += _summary(beside, "beside folders of shapes", "move them into a folder", tree.path)
    unread = [path for branch in tree.walk() for path in branch.unread]
    found += _summary(unread, "of formats that are not read", "unpack or convert them", tree.path)
    if found:
        warnings.warn(
            f"{tree.path} has files of shapes that are skipped: {' and '.join(found)}",
            UserWarning,
            stacklevel=6,  # the caller of load_dataset
        )


def deep_files(branches: Iterable[Branch]) -> Iterator[Path]:
    """Files that may hold shapes in folders that are too deep to be scanned, sorted within each folder."""
    return (path for branch in branches for folder in branch.deeper for path in _files_below(folder))


def clouds_in_text(branches: Iterable[Branch]) -> Iterator[Path]:
    """Text files that may hold clouds, including those that were taken for notes."""
    paths = (path for branch in branches for path in sorted(branch.path.iterdir()))
    texts = (path for path in paths if suffix_of(path.name) in NOTE_SUFFIXES)
    return (path for path in texts if is_shape_file(path.name, at_top=False) and may_hold_cloud(path))


def may_hold_cloud(path: Path) -> bool:
    """True for an array that can be read as a cloud, or a text file that starts with a line of numbers."""
    if not path.is_file():
        return False
    try:
        if suffix_of(path.name) in NOTE_SUFFIXES:
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


def _summary(files: Sequence[Path], where: str, remedy: str, folder: Path) -> list[str]:
    if not files:
        return []
    count = f"{len(files):,} file{'s' * (len(files) > 1)}"
    return [f"{count} {where}, the first {quoted(files[0].relative_to(folder))} ({remedy})"]
