"""Scan a dataset's folder and its subfolders for shape files, by name, without opening them."""

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.readers.formats import is_shape_file, is_unread_shape
from pointset.errors import PointsetError, quoted

DEPTH = 2
"""Levels of subfolders that are scanned."""


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
            visible = [entry for entry in found if not entry.name.startswith((".", "__MACOSX"))]
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
