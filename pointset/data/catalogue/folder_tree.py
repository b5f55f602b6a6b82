"""What a folder of shapes holds, read once: a hundred thousand files take a second or two."""

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.files.file_kinds import is_shape_file
from pointset.errors import PointsetError

DEPTH = 2
"""Folders inside folders, at most, in the layouts that are known."""


@dataclass
class Branch:
    """A folder's shape files and folders, each by name in Unicode's composed form (NFC), sorted."""

    path: Path
    inside: str
    """Where it is in the data set's folder, such as "chair/train"; empty for that folder itself."""
    files: dict[str, Path] = field(default_factory=dict)
    folders: list["Branch"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its own name."""
        return self.inside.rpartition("/")[2]

    def walk(self) -> Iterator["Branch"]:
        """This folder and all inside it."""
        yield self
        for folder in self.folders:
            yield from folder.walk()


def read_tree(folder: Path) -> Branch:
    """Read a data set's folder.

    Hidden entries, what macOS leaves in archives and files that cannot be shapes are passed over, and so are links
    that lead nowhere or back to a folder above them.

    Raises:
        PointsetError: a folder cannot be read, or two of its entries have one name in two forms of Unicode.
    """
    return _read(folder, "", DEPTH, ())


def _read(folder: Path, inside: str, depth: int, above: tuple[tuple[int, int], ...]) -> Branch:
    branch = Branch(folder, inside)
    here = folder.stat()
    above = (*above, (here.st_dev, here.st_ino))
    for name, entry in _entries(folder):
        place = f"{inside}/{name}" if inside else name
        try:
            if entry.is_dir():
                found = entry.stat()
                if depth and (found.st_dev, found.st_ino) not in above:
                    branch.folders.append(_read(Path(entry.path), place, depth - 1, above))
            elif is_shape_file(name, at_top=not inside) and entry.is_file():
                branch.files[name] = Path(entry.path)
        except PermissionError as error:
            raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
        except OSError:  # a link that leads in a circle
            continue
    return branch


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
                f"{folder} holds two entries called {name!r}, in two forms of Unicode: rename one, or make them one"
            )
        named[name] = entry
    return sorted(named.items())
