"""The manifest of a finished pool, which is checked against the pool's arrays, its plan and the shapes' files.

A pool is a folder with `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds; on request
`normals.npy` of the same shape, and `features.npy` with f numbers per point; and `manifest.json`, whose digest is in
SHA256SUMS. The manifest has digests of the arrays for each shape. Pools of another format are refused; the version of
the library is recorded only for information.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

import pointset
from pointset.data.pools.plan import FORMAT, TYPES, Plan, Sampling
from pointset.data.readers.trimesh_meshes import files_beside
from pointset.errors import QUOTED, PointsetError, one_line
from pointset.runs import digests

FILE = "manifest.json"


class Source(msgspec.Struct, frozen=True):
    """One version of a shape's file."""

    bytes: int
    """Size, including external buffers of a .gltf or .glb file."""
    modified_ns: int
    """Time of the latest modification."""
    blake2b: str | None
    """Digest of the contents; None if they could not be read."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """The current version of a file; an OSError if it cannot be read."""
        return cls(*_size_and_time(path), hash_source(path))

    def is_current(self, path: Path) -> bool:
        """True if the file still has these contents, which are read only if its size or time differ."""
        try:
            return _size_and_time(path) == (self.bytes, self.modified_ns) or hash_source(path) == self.blake2b
        except OSError:
            return self.blake2b is None  # unchanged if it could not be read before either


def hash_source(path: Path) -> str:
    """BLAKE2b digest of the contents, 32 hexadecimal digits; an OSError if they cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _size_and_time(path: Path) -> tuple[int, int]:
    facts = [file.stat() for file in _files(path)]
    return sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


def _files(path: Path) -> list[Path]:
    """The file and, for .gltf and .glb, the external buffers that it names."""
    return [path, *(files_beside(path) if path.suffix.lower() in (".gltf", ".glb") else ())]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One shape of a pool."""

    name: str
    label: int
    file: str
    source: Source
    checksums: dict[str, str] = {}
    """BLAKE2b digests of its points in each array."""
    skipped: str = ""
    """The reason why it has no points; empty if it has some."""
    size: int | None = None
    """Number of points, for clouds."""
    width: int | None = None
    """Number of features per point, f, if any."""

    @property
    def is_current(self) -> bool:
        """True if the shape's file has not changed."""
        return self.source.is_current(Path(self.file))


@dataclass(frozen=True)
class Manifest:
    """The dataset, the sampling and the shapes of a finished pool."""

    folder: str
    classes: tuple[str, ...]
    sampling: Sampling
    entries: tuple[Entry, ...]

    @cached_property  # used once per shape, so computing it each time would take quadratic time
    def kept(self) -> list[Entry]:
        """The shapes that have points, in order."""
        return [entry for entry in self.entries if not entry.skipped]

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why other shapes could not be used, by name."""
        return {entry.name: entry.skipped for entry in self.entries if entry.skipped}

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The first point of each kept shape among all points, and the number of all points, [M + 1]."""
        return np.cumsum([0, *(self.sampling.points or entry.size or 0 for entry in self.kept)])

    def shape(self, array: str) -> tuple[int, ...]:
        """The shape of an array; a PointsetError if the shapes differ in their number of features."""
        columns: tuple[int, ...] = () if array == "labels" else (3,)
        if array == "features":
            first = self.kept[0]
            columns = (first.width or 0,)
            for entry in self.kept:
                if entry.width != first.width:
                    names, odd = ", ".join(self.sampling.features), f"{entry.width} in {entry.file}"
                    raise PointsetError(
                        f"{names} are {first.width} in {first.file} and {odd}: give all files the same number"
                    )
        points = self.sampling.points
        return (int(self.offsets[-1]), *columns) if points is None else (len(self.kept), points, *columns)

    def open_arrays(self, folder: Path) -> dict[str, NDArray[Any]]:
        """Memory-map the arrays; a PointsetError if one of them is missing, truncated or of another shape."""
        arrays = {}
        for name in self.sampling.arrays:
            try:
                arrays[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
            except (OSError, ValueError, EOFError) as error:
                raise PointsetError(f"{name}.npy is missing or damaged ({one_line(error, QUOTED)})") from error
            actual, expected = (arrays[name].dtype, arrays[name].shape), (np.dtype(TYPES[name]), self.shape(name))
            if actual != expected:
                raise PointsetError(f"{name}.npy is damaged: expected {expected}, got {actual}")
        return arrays

    def check(self, plan: Plan) -> None:
        """Raise a PointsetError unless the pool was made by this plan, from the files as they are now."""
        shapes = [(entry.name, entry.label, entry.file) for entry in self.entries]
        planned = [(shape.name, shape.label, str(shape.path)) for shape in plan.shapes]
        mine, theirs = (self.folder, self.classes, self.sampling), (str(plan.root), plan.classes, plan.sampling)
        if (*mine, shapes) != (*theirs, planned):
            raise PointsetError(f"its {FILE} describes other shapes than its name")
        if changed := [entry.file for entry in self.entries if not entry.is_current]:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise PointsetError(f"{changed[0]}{more} has changed since the pool was made")

    def as_json(self) -> bytes:
        """The manifest as a file."""
        head = {"format": FORMAT, "version": pointset.__version__, "folder": self.folder, "classes": self.classes}
        content = {**head, **self.sampling.as_dict(), "shapes": self.entries}
        return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def read_manifest(folder: Path) -> Manifest:
    """Read a pool's manifest.

    Raises:
        PointsetError: the manifest is missing, damaged or of another format.
    """
    try:
        content = msgspec.json.decode(digests.read(folder / FILE, "build the pool again"))
        if content["format"] != FORMAT:
            raise PointsetError(f"it has format {content['format']}, and this version of pointset reads {FORMAT}")
        entries = msgspec.convert(content["shapes"], tuple[Entry, ...])
        return Manifest(content["folder"], tuple(content["classes"]), msgspec.convert(content, Sampling), entries)
    except digests.DamagedError as error:
        raise PointsetError(error.fault) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {one_line(error, QUOTED)}"
        raise PointsetError(f"its {FILE} cannot be read: {reason}") from error
