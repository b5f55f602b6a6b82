"""Suffixes of meshes, clouds and other files, and checks that all readers share."""

import codecs
import re
import warnings
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pointset.errors import REPEATED, PointsetError, one_line, require_extra
from pointset.runs.files import require_file

FileKind = Literal["meshes", "clouds"]
MESH_SUFFIXES = frozenset([".off", ".obj", ".ply", ".stl", ".glb", ".gltf", ".3mf", ".dae"])
"""Suffixes of meshes. GLB, glTF and 3MF files are read by trimesh."""
NOTE_SUFFIXES = frozenset({".txt", ".csv", ".tsv"})
"""Suffixes of text files, which may be clouds, notes or tables."""
LIST_SUFFIXES = NOTE_SUFFIXES | {".npy", ".npz"}
CLOUD_SUFFIXES = LIST_SUFFIXES | frozenset(
    [".ply", ".obj", ".off", ".pcd", ".las", ".laz", ".xyz", ".asc", ".pts", ".xyzn", ".xyzrgb"]
)
SHAPE_SUFFIXES = MESH_SUFFIXES | CLOUD_SUFFIXES
UNREAD = re.compile(
    r"\.(3dm|3ds|abc|bin|blend|brep|ctm|dxf|e57|fbx|gts|h5|hdf5|ifc|ige?s|lwo|mat|max|mesh|msh|nii|pcap|pkl|ptx|rc[ps]|"
    r"skp|sldprt|step|stp|swc|usd[az]?|vrml|vt[kpu]|wrl|x3d)"
)
"""Suffixes of unsupported shape formats."""
ARCHIVE_SUFFIXES = frozenset({".7z", ".rar", ".tar", ".tgz", ".zip"})
PACKED_SUFFIXES = frozenset({".bz2", ".gz", ".xz", ".zip", ".zst"})
LIBRARIES = {
    ".las": ("las", "laspy", "lazrs"),
    ".laz": ("las", "laspy", "lazrs"),
    ".3mf": ("meshes", "lxml", "networkx"),
    ".dae": ("meshes", "collada"),
}
"""By suffix: the extra (optional dependencies) of this package, and the modules of the extra that are needed."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Byte order marks of text in UTF-16, which some programs for Windows write."""
NOTES = re.compile(r"(readme([^a-z0-9].*)?|licen[cs]e|copying)\.txt", re.DOTALL)
"""Lower-case names of text files without clouds. license_plate.txt does not match, because it may be a cloud."""
WITHOUT_SUFFIX = re.compile("readme|licen[cs]e|copying|notice|authors|makefile|version")
"""Files without a suffix hold no shape if their lower-case names begin like this."""


def content_by_name(name: str) -> Literal["shape", "shape or list", "unread", ""]:
    """Return what a file of this name may hold: "unread" for unsupported formats and archives, "" for no shape."""
    suffix = suffix_of(name)
    if suffix in LIST_SUFFIXES:
        return "" if NOTES.fullmatch(name.lower()) else "shape or list"
    if suffix in SHAPE_SUFFIXES:
        return "shape"
    inner = suffix_of(name[: -len(suffix)]) if suffix in PACKED_SUFFIXES else suffix
    is_unread = UNREAD.fullmatch(inner) or inner in SHAPE_SUFFIXES or suffix in ARCHIVE_SUFFIXES
    return "unread" if is_unread or not (suffix or WITHOUT_SUFFIX.match(name.lower())) else ""


def suffix_of(name: str) -> str:
    """Return the last suffix of a file's name in lower case. This is ten times as fast as pathlib."""
    stem, dot, last = name.rpartition(".")
    return dot + last.lower() if stem else ""


def require_shape_file(path: Path, suffixes: Set[str] = SHAPE_SUFFIXES) -> None:
    """Raise a PointsetError unless this is a regular file with one of the suffixes, and its library is installed."""
    with naming(path, PointsetError):
        if not path.exists():
            raise PointsetError("the file or folder does not exist: check its spelling")
        require_file(path)
        if path.suffix.lower() not in suffixes:
            known = ", ".join(sorted(suffixes))
            raise PointsetError(f"expected a file that ends in one of {known}, not in {path.suffix or 'no suffix'!r}")
        require_library(path.suffix.lower())


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8, in UTF-16 with a byte order mark, or in Windows-1252."""
    content = path.read_bytes()
    if content.startswith(UTF_16):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def require_library(suffix: str) -> None:
    """Raise a PointsetError if the library that reads a format is not installed."""
    if suffix in LIBRARIES:
        extra, *modules = LIBRARIES[suffix]
        require_extra(extra, f"a {suffix} file", *modules)


def require_count(present: int, declared: int, what: str) -> None:
    """Raise a PointsetError unless a file has the number of entries that it declares."""
    if present != declared:
        raise PointsetError(f"declares {declared:,} {what}, and {present:,} can be read: it is cut off or damaged")


def is_padding(rest: bytes | np.ndarray) -> bool:
    """Return True if the bytes after the data are only line ends or zeros (PCL fills a memory page with zeros)."""
    return bool(np.isin(np.frombuffer(rest, np.uint8), list(b"\0\r\n")).all())


def warn_of_rest(path: str | Path, rest: Any, what: str = "bytes") -> None:
    """Warn of anything after the data of a file, except padding."""
    if len(rest) and not (what == "bytes" and is_padding(rest)):
        message = f"has {len(rest):,} {what} more than its header says, which are not read"
        warnings.warn(f"{path}: {message}", stacklevel=3)


def take_declared(path: str | Path, entries: Any, count: int, what: str = "bytes") -> Any:
    """Return the first `count` bytes or other entries. Refuse fewer, and warn of more unless they are padding."""
    require_count(min(len(entries), count), count, what)
    warn_of_rest(path, entries[count:], what)
    return entries[:count]


@contextmanager
def naming(path: Path, kind: type[PointsetError]) -> Iterator[None]:
    """Convert all errors in this block to errors of this `kind`, with messages that begin with the path of the file."""
    try:
        yield
    except PointsetError as error:
        message = str(error)
        if not message.startswith(str(path)):
            message = f"{path}{',' if message.startswith('line ') else ':'} {message}"
        raise kind(message) from error
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror or one_line(error, REPEATED)}") from error
    except MemoryError as error:
        raise kind(f"{path}: does not fit into memory") from error
    except BaseException as error:  # damaged files raise errors of any type, in Rust code a PanicException
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = one_line(error, REPEATED) or type(error).__name__
        raise kind(f"{path}: is damaged, or not a {path.suffix} file ({reason}): restore it from a copy") from error
