"""Scan a dataset's folder and its subfolders for shape files, by name, and warn of those that are skipped."""

import os
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import is_shape_file, is_unread_shape
from pointset.data.readers.scans import open_scan
from pointset.data.targets import FILE as TARGETS
from pointset.errors import PointsetError, quoted

DEPTH = 2
"""Levels of subfolders that are scanned."""
HIDDEN = (".", "__MACOSX")
"""First characters of the names of files that are ignored."""
TOO_DEEP = "more than two folders deep"
BESIDE = "beside folders of shapes"
UNREAD = "of formats that are not read"
REMEDIES = {TOO_DEEP: "move them up", BESIDE: "move them into a folder", UNREAD: "unpack or convert them"}


@dataclass
class FileTree:
    """The shape files in a folder, by paths relative to it, such as "chair/train/1.off", in Unicode's composed form."""

    path: Path
    files: dict[str, Path] = field(default_factory=dict)
    """Sorted by folder and name."""
    folders: list[str] = field(default_factory=list)
    """Subfolders, also those without shape files."""
    skipped: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Shape files that are not used, by reason: a key of `REMEDIES`."""

    def warn_of_skipped(self) -> None:
        """Warn once of shape files that are skipped, with their number, the first of them and what to do."""
        reasons = []
        for reason, paths in self.skipped.items():
            first = quoted(paths[0].relative_to(self.path))
            files = f"{len(paths):,} file{'s' * (len(paths) > 1)}"
            reasons.append(f"{files} {reason}, the first {first} ({REMEDIES[reason]})")
        if reasons:
            warnings.warn(
                f"{self.path} has files of shapes that are skipped: {' and '.join(reasons)}",
                UserWarning,
                stacklevel=6,  # the caller of load_dataset
            )


def scan_folder(folder: Path, *, loose: bool = False) -> FileTree:
    """Scan a dataset's folder; with `loose`, text files and arrays at the top level are shapes too, but targets.csv.

    Links to a folder above, pipes and devices are ignored. A dangling link with the name of a shape file is listed as
    one, so that reading it reports an error.

    Raises:
        PointsetError: a folder cannot be read, or a name cannot be used.
    """
    tree = FileTree(folder)
    try:
        _scan(tree, folder, "", at_top=not loose)
    except PermissionError as error:
        raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
    tree.files.pop(TARGETS, None)
    tree.files = dict(sorted(tree.files.items(), key=lambda item: item[0].split("/")))
    return tree


def _scan(tree: FileTree, folder: Path, inside: str, at_top: bool) -> None:
    unread, stems = list[Path](), set[str]()
    for name, entry in _entries(folder):
        path, is_link = Path(entry.path), entry.is_symlink()
        if path.is_dir() if is_link else entry.is_dir():
            if is_link and folder.resolve().is_relative_to(path.resolve()):
                continue
            if inside.count("/") == DEPTH:
                if below := [*_shapes_below(path)]:
                    tree.skipped[TOO_DEEP] += below
            else:
                tree.folders.append(inside + name)
                _scan(tree, path, f"{inside}{name}/", at_top=False)
        elif path.exists() and not path.is_file() if is_link else not entry.is_file():
            continue
        elif is_shape_file(name, at_top=at_top):
            tree.files[inside + name] = path
            stems.add(Path(name).stem)
        elif at_top and is_shape_file(name, at_top=False):
            if may_hold_cloud(path):
                tree.skipped[BESIDE].append(path)
        elif not at_top and is_unread_shape(name):
            unread.append(path)
    # Copies of read files do not count: next to chair.off, neither chair.fbx nor chair.off.gz.
    if unread := [path for path in unread if stems.isdisjoint((path.stem, Path(path.stem).stem))]:
        tree.skipped[UNREAD] += unread


def _entries(folder: Path) -> list[tuple[str, "os.DirEntry[str]"]]:
    """The visible entries with their NFC names, sorted; a PointsetError for a name that cannot be saved in results."""
    with os.scandir(folder) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(HIDDEN)]
    named: dict[str, os.DirEntry[str]] = {}
    for entry in visible:
        name = entry.name if entry.name.isascii() else unicodedata.normalize("NFC", entry.name)
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise PointsetError(f"{folder} holds {quoted(os.fsencode(name))}, a name that is not UTF-8: rename it")
        if name in named:
            raise PointsetError(
                f"{folder} holds two entries called {quoted(name)}, in two forms of Unicode: rename or delete one"
            )
        named[name] = entry
    return sorted(named.items())


def _shapes_below(folder: Path) -> Iterator[Path]:
    """Files that may hold shapes in a folder and its subfolders, sorted within each folder."""
    for root, subfolders, files in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(HIDDEN))
        for name in sorted(files):
            path = Path(root, name)
            if name.startswith(HIDDEN) or not is_shape_file(name, at_top=False):
                continue
            if is_shape_file(name, at_top=True) or may_hold_cloud(path):
                yield path


def may_hold_cloud(path: Path) -> bool:
    """True if a text file or an array can be read as a cloud: others are lists of names and arrays of labels."""
    try:
        open_scan(path)
    except CloudError:
        return False
    return True
