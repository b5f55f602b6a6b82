"""Scan a dataset's folder and its subfolders for shape files, by name, and warn of those that are skipped."""

import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import NOTE_SUFFIXES, is_shape_file, is_unread_shape, suffix_of
from pointset.data.readers.scans import open_scan
from pointset.data.targets import FILE as TARGETS
from pointset.errors import PointsetError, quoted

DEPTH = 2
"""Levels of subfolders that are scanned."""
HEAD = 1 << 16
"""Bytes of a text file that are examined."""
HIDDEN = (".", "__MACOSX")
"""First characters of the names of files that are ignored."""


@dataclass
class FileTree:
    """The shape files in a folder, by paths relative to it, such as "chair/train/1.off", in Unicode's composed form."""

    path: Path
    files: dict[str, Path] = field(default_factory=dict)
    """Sorted by folder and name."""
    folders: list[str] = field(default_factory=list)
    """Subfolders, also those without shape files."""
    deeper: dict[str, Path] = field(default_factory=dict)
    """Subfolders that are not scanned because they are too deep."""
    beside: list[Path] = field(default_factory=list)
    """Text files and arrays at the top level, which are not taken for shapes."""
    unread: list[Path] = field(default_factory=list)
    """Shapes in unsupported formats below the top level, unless a readable file has the same stem."""


def scan_folder(folder: Path, *, loose: bool = False) -> FileTree:
    """Scan a dataset's folder; with `loose`, text files and arrays at the top level are shapes too, but targets.csv.

    Links to a parent folder, pipes and devices are skipped. A dangling link with the name of a shape file is listed as
    one, so that reading it reports an error.

    Raises:
        PointsetError: a folder cannot be read, or a name cannot be used.
    """
    tree = FileTree(folder)
    _scan(tree, folder, "", (), at_top=not loose)
    tree.files.pop(TARGETS, None)
    tree.files = dict(sorted(tree.files.items(), key=lambda item: item[0].split("/")))
    return tree


def _scan(tree: FileTree, folder: Path, inside: str, above: tuple[tuple[int, int], ...], at_top: bool) -> None:
    here, unread, stems = folder.stat(), list[Path](), set[str]()
    above = (*above, (here.st_dev, here.st_ino))
    for name, entry in _entries(folder):
        path, is_shape = Path(entry.path), is_shape_file(name, at_top=at_top)
        try:
            if entry.is_dir():
                facts = entry.stat()
                if (facts.st_dev, facts.st_ino) in above:
                    continue
                if len(above) > DEPTH:
                    tree.deeper[inside + name] = path
                    continue
                _require_utf8(entry)
                tree.folders.append(inside + name)
                _scan(tree, path, f"{inside}{name}/", above, at_top=False)
            elif is_shape and (entry.is_file() or (entry.is_symlink() and not path.exists())):
                _require_utf8(entry)
                tree.files[inside + name] = path
                stems.add(Path(name).stem)
            elif at_top and is_shape_file(name, at_top=False) and entry.is_file():
                tree.beside.append(path)
            elif not at_top and is_unread_shape(name) and entry.is_file():
                unread.append(path)
        except PermissionError as error:
            raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
        except OSError:  # a circular link
            if is_shape:
                tree.files[inside + name] = path
    # Copies of read files do not count: next to chair.off, neither chair.fbx nor chair.off.gz.
    tree.unread += [path for path in unread if stems.isdisjoint((path.stem, Path(path.stem).stem))]


def _require_utf8(entry: "os.DirEntry[str]") -> None:
    """Raise a PointsetError for a name that is not UTF-8, which could not be saved in results."""
    try:
        entry.name.encode()
    except UnicodeEncodeError as error:
        name = quoted(os.fsencode(entry.name))
        raise PointsetError(f"{Path(entry.path).parent} holds {name}, a name that is not UTF-8: rename it") from error


def _entries(folder: Path) -> list[tuple[str, "os.DirEntry[str]"]]:
    """The visible entries with their NFC names, sorted."""
    try:
        with os.scandir(folder) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(HIDDEN)]
    except PermissionError as error:
        raise PointsetError(f"{folder} cannot be read: {error.strerror}") from error
    named: dict[str, os.DirEntry[str]] = {}
    for entry in visible:
        name = entry.name if entry.name.isascii() else unicodedata.normalize("NFC", entry.name)
        if name in named:
            raise PointsetError(
                f"{folder} holds two entries called {quoted(name)}, in two forms of Unicode: rename or delete one"
            )
        named[name] = entry
    return sorted(named.items())


def warn_of_skipped(tree: FileTree) -> None:
    """Warn once of shapes in too deep folders, of clouds beside the folders, and of unsupported formats.

    Text files and arrays count only if they can be clouds, because many datasets have lists of names and arrays of
    labels beside their folders.

    Warns:
        UserWarning: there are such files; the message has their number, the first of them and what to do.
    """
    deep = list(shapes_below(tree.deeper.values()))
    beside = [path for path in tree.beside if may_hold_cloud(path)]
    reasons = _summary(deep, "more than two folders deep", "move them up", tree.path)
    reasons += _summary(beside, "beside folders of shapes", "move them into a folder", tree.path)
    reasons += _summary(tree.unread, "of formats that are not read", "unpack or convert them", tree.path)
    if reasons:
        warnings.warn(
            f"{tree.path} has files of shapes that are skipped: {' and '.join(reasons)}",
            UserWarning,
            stacklevel=6,  # the caller of load_dataset
        )


def _summary(files: Sequence[Path], where: str, remedy: str, folder: Path) -> list[str]:
    if not files:
        return []
    count = f"{len(files):,} file{'s' * (len(files) > 1)}"
    return [f"{count} {where}, the first {quoted(files[0].relative_to(folder))} ({remedy})"]


def shapes_below(folders: Iterable[Path]) -> Iterator[Path]:
    """Files that may hold shapes in folders and all their subfolders, sorted within each folder."""
    for folder in folders:
        for root, subfolders, files in os.walk(folder):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith(HIDDEN))
            for name in sorted(files):
                path = Path(root, name)
                if name.startswith(HIDDEN) or not is_shape_file(name, at_top=False):
                    continue
                if may_hold_cloud(path) if suffix_of(name) in (".txt", ".npy", ".npz") else path.is_file():
                    yield path


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
