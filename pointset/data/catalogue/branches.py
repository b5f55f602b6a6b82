"""A dataset's folder and those inside it: their shape files by name, found but not opened."""

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.files.file_kinds import is_shape_file, is_unread_shape
from pointset.errors import PointsetError, quoted

DEPTH = 2
"""Levels of folders below a dataset's own."""


@dataclass
class Branch:
    """A folder's shape files and folders, each by name in Unicode's composed form (NFC), sorted."""

    path: Path
    inside: str
    """Where it is in the dataset's folder, such as "chair/train"; empty for that folder itself."""
    files: dict[str, Path] = field(default_factory=dict)
    folders: list["Branch"] = field(default_factory=list)
    deeper: list[Path] = field(default_factory=list)
    """Folders in it that are not looked into, being too deep."""
    beside: list[Path] = field(default_factory=list)
    """Text and arrays that are not taken for shapes, lying at the top."""
    unread: list[Path] = field(default_factory=list)
    """Shapes in formats that are not read, if none of that name is; lists at the top are not among them."""

    @property
    def name(self) -> str:
        """Its last part; empty for the dataset's own folder."""
        return self.inside.rpartition("/")[2]

    def walk(self) -> Iterator["Branch"]:
        """Itself, and every folder inside it."""
        yield self
        for folder in self.folders:
            yield from folder.walk()


def read_branch(folder: Path, inside: str = "", above: tuple[tuple[int, int], ...] = (), loose: bool = False) -> Branch:
    """A dataset's folder, or one inside it.

    Links back to a folder above, pipes and devices are skipped. A link that leads nowhere counts as a file if it has
    the name of one: it cannot be read, and that is said. `loose` also takes text and arrays at the top for shapes.
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
            elif is_shape_file(name, at_top=at_top) and (entry.is_file() or _leads_nowhere(entry)):
                _require_utf8(entry)
                branch.files[name] = Path(entry.path)
            elif at_top and is_shape_file(name, at_top=False) and entry.is_file():
                branch.beside.append(Path(entry.path))
            elif not at_top and is_unread_shape(name) and entry.is_file():
                branch.unread.append(Path(entry.path))
        except PermissionError as error:
            raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
        except OSError:  # a link that leads in a circle
            if is_shape_file(name, at_top=at_top):
                branch.files[name] = Path(entry.path)
    branch.unread = _without_twins(branch)
    return branch


def _without_twins(branch: Branch) -> list[Path]:
    """Files in other formats that are of no name that is taken: chair.off stands for chair.fbx and chair.off.gz."""
    taken = {Path(name).stem for name in branch.files} if branch.unread else set()
    return [path for path in branch.unread if taken.isdisjoint((path.stem, Path(path.stem).stem))]


def _leads_nowhere(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not Path(entry.path).exists()


def _require_utf8(entry: "os.DirEntry[str]") -> None:
    """Refuse a name that no file of results could hold."""
    try:
        entry.name.encode()
    except UnicodeEncodeError as error:
        name = quoted(os.fsencode(entry.name))
        raise PointsetError(f"{Path(entry.path).parent} holds {name}, a name that is not UTF-8: rename it") from error


def _entries(folder: Path) -> list[tuple[str, "os.DirEntry[str]"]]:
    """The visible entries by composed name, sorted."""
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
                f"{folder} holds two entries called {quoted(name)}, in two forms of Unicode: rename one, or make them "
                "one"
            )
        named[name] = entry
    return sorted(named.items())
