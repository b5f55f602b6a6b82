"""Scan a folder for shape files by their names, and note which files are skipped and why."""

import os
import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.readers.formats import MESH_SUFFIXES, NOTE_SUFFIXES, content_by_name, require_library, suffix_of
from pointset.errors import PointsetError, counted, quoted

DEPTH = 2
"""Levels of subfolders that are scanned in a folder without a table of labels."""
HIDDEN = "with a hidden name (in __MACOSX, or with a dot at the beginning)"
TOO_DEEP = "more than two folders deep (move them up)"
BESIDE = "beside folders of shapes (move clouds into a folder)"
TABLE = "beside folders of shapes (move clouds into a folder; --labels takes a table of files and labels)"
NOTES = "of text beside shapes of other formats (move clouds in text to a separate folder)"
UNREAD = "of the format {}, which is not read (unpack or convert them)"
EMPTY = "without a mesh or a point cloud (they do not count as classes)"
COPIES = "of shapes that are there in another format (each shape counts once)"


@dataclass
class FileTree:
    """The shape files in a folder, by relative path in Unicode's NFC form, such as "chair/train/1.off"."""

    path: Path
    files: dict[str, Path] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    """Subfolders, including those without shapes."""
    beside: dict[str, Path] = field(default_factory=dict)
    """Text files and arrays at the top of the folder; they may be clouds, tables or lists."""
    notes: list[tuple[str, Path]] = field(default_factory=list)
    """The reason and the path of each skipped file or folder."""

    def skip(self, reason: str, names: Iterable[str]) -> None:
        """Leave out files, and note the reason."""
        self.notes += [(reason, self.files.pop(name)) for name in names]

    def skipped(self, *folders: Path) -> dict[str, str]:
        """Return a text for each reason to skip files in these folders, with the number of files and the first file."""
        by_reason: dict[str, list[Path]] = defaultdict(list)
        for reason, path in self.notes:
            if any(path.is_relative_to(folder) for folder in folders or (self.path,)):
                by_reason[reason].append(path.relative_to(self.path))
        return {
            reason: f"{counted(len(paths), 'folder' if reason == EMPTY else 'file')} {reason}, the first "
            f"{quoted(paths[0])}"
            for reason, paths in by_reason.items()
        }

    def warn_of_skipped(self) -> None:
        """Give one warning about everything that is skipped."""
        if reasons := self.skipped():
            text = f"{self.path} has files that are skipped: {'; '.join(reasons.values())}"
            warnings.warn(text, UserWarning, stacklevel=7)  # the caller of load_dataset


def scan_folder(folder: Path, depth: int = DEPTH) -> FileTree:
    """Scan a folder; raise a PointsetError if a part of it cannot be read."""
    tree = FileTree(folder)
    try:
        _scan(tree, folder, "", depth)
    except PermissionError as error:
        raise PointsetError(f"{error.filename} cannot be read: {error.strerror}") from error
    tree.files = dict(sorted(tree.files.items(), key=lambda item: item[0].split("/")))
    for suffix in sorted({suffix_of(name) for name in tree.files}):
        try:
            require_library(suffix)
        except PointsetError as error:  # one note for all files
            tree.skip(f"that cannot be read ({error})", [name for name in tree.files if suffix_of(name) == suffix])
    return tree


def _scan(tree: FileTree, folder: Path, inside: str, most: int) -> None:
    for name, entry in _entries(tree, folder):
        path, content = Path(entry.path), content_by_name(name)
        item = path if entry.is_symlink() else entry  # an entry is faster, but fails for circular links
        if not item.is_dir():
            if content == "unread":
                tree.notes.append((UNREAD.format(path.suffix.lower() or "without a suffix"), path))
            elif content:
                files = tree.files if content == "shape" or inside else tree.beside
                files[inside + name] = path
        elif entry.is_symlink() and folder.resolve().is_relative_to(path.resolve()):
            continue
        elif inside.count("/") == most:
            tree.notes += [(TOO_DEEP, shape) for shape in _shapes_in(path)]
        else:
            tree.folders.append(inside + name)
            _scan(tree, path, f"{inside}{name}/", most)


def _entries(tree: FileTree, folder: Path) -> list[tuple[str, "os.DirEntry[str]"]]:
    """Return the visible entries with their NFC names, sorted; raise a PointsetError if a name is not UTF-8."""
    named: dict[str, os.DirEntry[str]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = unicodedata.normalize("NFC", entry.name)
            if name.startswith(".") or name == "__MACOSX":
                tree.notes += [(HIDDEN, path) for path in _shapes_in(Path(entry.path))]
            elif re.search("[\ud800-\udfff]", name):
                raise PointsetError(f"{folder} holds {quoted(os.fsencode(name))}, a name that is not UTF-8: rename it")
            elif named.setdefault(name, entry) is not entry:
                raise PointsetError(
                    f"{folder} holds two entries called {quoted(name)}, in two Unicode forms: rename one"
                )
    return sorted(named.items())


def _shapes_in(path: Path) -> list[Path]:
    """Return all shape files in a folder and its subfolders; for the path of a shape file, return this path alone."""
    paths = [Path(top) / name for top, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    return sorted(path for path in paths if content_by_name(path.name) == "shape")


def leave_out_notes(tree: FileTree) -> None:
    """Leave out text files, unless all files are text."""
    if not {suffix_of(name) for name in tree.files} <= NOTE_SUFFIXES:
        tree.skip(NOTES, [name for name in tree.files if suffix_of(name) in NOTE_SUFFIXES])


def leave_out_copies(tree: FileTree) -> None:
    """Of files whose names differ only in the suffix, keep one: the first mesh by name, or else the first cloud."""
    kept: dict[str, str] = {}
    for name in sorted(tree.files, key=lambda name: (suffix_of(name) not in MESH_SUFFIXES, name)):
        kept.setdefault(name.rpartition(".")[0], name)
    tree.skip(COPIES, [name for name in tree.files if name not in kept.values()])
