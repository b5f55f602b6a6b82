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
from pointset.errors import PointsetError, quoted

DEPTH = 2
"""Levels of subfolders that are scanned."""
HEAD = 1 << 16
"""Bytes of a text file that are examined."""
HIDDEN = (".", "__MACOSX")
"""First characters of the names of files that are ignored."""


@dataclass
class Branch:
    """The shape files and subfolders of a folder, sorted by name in Unicode's composed form (NFC)."""

    path: Path
    inside: str
    """Path relative to the dataset's folder, such as "chair/train"; empty for that folder itself."""
    files: dict[str, Path] = field(default_factory=dict)
    folders: list["Branch"] = field(default_factory=list)
    deeper: list[Path] = field(default_factory=list)
    """Subfolders that are not scanned because they are too deep."""
    beside: list[Path] = field(default_factory=list)
    """Text files and arrays at the top level, which are not taken for shapes."""
    unread: list[Path] = field(default_factory=list)
    """Shapes in unsupported formats, unless a readable file has the same stem; empty at the top level."""

    @property
    def name(self) -> str:
        """Name of the folder; empty for the dataset's own folder."""
        return self.inside.rpartition("/")[2]

    def walk(self) -> Iterator["Branch"]:
        """This folder and all folders inside it."""
        yield self
        for folder in self.folders:
            yield from folder.walk()


def read_branch(folder: Path, inside: str = "", above: tuple[tuple[int, int], ...] = (), loose: bool = False) -> Branch:
    """Scan a dataset's folder, or a folder inside it.

    Links to a parent folder, pipes and devices are skipped. A dangling link with the name of a shape file is listed as
    one, so that reading it reports an error. With `loose`, text files and arrays at the top level are shapes too.
    """
    branch = Branch(folder, inside)
    here = folder.stat()
    above = (*above, (here.st_dev, here.st_ino))
    at_top = not inside and not loose
    for name, entry in _entries(folder):
        place = f"{inside}/{name}" if inside else name
        try:
            if entry.is_dir():
                found = entry.stat()
                if (found.st_dev, found.st_ino) in above:
                    continue
                if len(above) > DEPTH:
                    branch.deeper.append(Path(entry.path))
                    continue
                _require_utf8(entry)
                branch.folders.append(read_branch(Path(entry.path), place, above))
            elif is_shape_file(name, at_top=at_top) and (entry.is_file() or _is_dangling(entry)):
                _require_utf8(entry)
                branch.files[name] = Path(entry.path)
            elif at_top and is_shape_file(name, at_top=False) and entry.is_file():
                branch.beside.append(Path(entry.path))
            elif not at_top and is_unread_shape(name) and entry.is_file():
                branch.unread.append(Path(entry.path))
        except PermissionError as error:
            raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
        except OSError:  # a circular link
            if is_shape_file(name, at_top=at_top):
                branch.files[name] = Path(entry.path)
    branch.unread = _without_copies(branch)
    return branch


def _without_copies(branch: Branch) -> list[Path]:
    """The unread files without copies of read ones: next to chair.off, chair.fbx and chair.off.gz do not count."""
    taken = {Path(name).stem for name in branch.files} if branch.unread else set()
    return [path for path in branch.unread if taken.isdisjoint((path.stem, Path(path.stem).stem))]


def _is_dangling(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not Path(entry.path).exists()


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
        with os.scandir(folder) as found:
            visible = [entry for entry in found if not entry.name.startswith(HIDDEN)]
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


def warn_of_skipped(tree: Branch) -> None:
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
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        for name in sorted(name for name in files if not name.startswith(HIDDEN) and is_shape_file(name, at_top=False)):
            path = Path(root, name)
            checked = suffix_of(name) in (".txt", ".npy", ".npz")
            if may_hold_cloud(path) if checked else path.is_file():
                yield path


def _summary(files: Sequence[Path], where: str, remedy: str, folder: Path) -> list[str]:
    if not files:
        return []
    count = f"{len(files):,} file{'s' * (len(files) > 1)}"
    return [f"{count} {where}, the first {quoted(files[0].relative_to(folder))} ({remedy})"]
