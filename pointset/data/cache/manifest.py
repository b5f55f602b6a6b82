"""The files of a cache: arrays of the points of all shapes, and a manifest of the shapes.

A point cache is a folder. It has `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds.
On request, it has `normals.npy` of the same shape and `features.npy` with f values per point. Its `manifest.json` has
digests of each shape's arrays and file, for `pointset data verify`. The folder's name depends on `CACHE_FORMAT`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from pointset.configuration import PointCount, Seed
from pointset.data.catalogue.folders import Listing, ShapeFile
from pointset.data.catalogue.locate import home
from pointset.data.options import DataOptions, Preparation
from pointset.data.point_cache import digest_of, one_width
from pointset.data.readers.formats import FileKind
from pointset.errors import QUOTED, PointsetError, described, one_line
from pointset.runs.files import read_file
from pointset.runs.progress import followed

CACHE_FORMAT = 7
"""Version of the files, and of the results of readers and samplers. It enters the hash in the name of a cache."""
MANIFEST_FILE = "manifest.json"
RELEVANT: dict[FileKind, tuple[str, ...]] = {
    "meshes": ("cache_points", "sampler", "features"),
    "clouds": ("features", "remove_outliers", "outlier_neighbours", "outlier_ratio"),
}
"""Fields of a preparation that determine the points in a cache."""


class Source(msgspec.Struct, frozen=True):
    """Identification of the content of a source file."""

    bytes: int
    """Size of the file."""
    modified_ns: int
    """Time of the last modification, in nanoseconds."""
    blake2b: str | None
    """Digest of the contents; None if the file could not be read."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the `Source` of a file; an OSError if it cannot be read."""
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, hash_source(path))

    def is_current(self, path: Path) -> bool:
        """Return True if the file has not changed. The content is read only if the size or the time differs."""
        try:
            status = path.stat()
            same = (status.st_size, status.st_mtime_ns) == (self.bytes, self.modified_ns)
            return same or hash_source(path) == self.blake2b
        except OSError:
            return self.blake2b is None  # a file that is still unreadable has not changed


def hash_source(path: Path) -> str:
    """Return the BLAKE2b digest of a file, 32 hexadecimal digits; an OSError if it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_digests(paths: Sequence[Path]) -> list[str]:
    """Return a text for each file, equal for files with the same bytes; only files of equal sizes are read."""
    sizes = [path.stat().st_size for path in paths]
    counts = Counter(sizes)
    return [hash_source(path) if counts[size] > 1 else str(path) for path, size in zip(paths, sizes, strict=True)]


class CacheEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One shape of a cache."""

    name: str
    label: Seed
    file: str
    source: Source
    checksums: dict[str, str] = {}
    """BLAKE2b digest of the shape's part of each array, by name."""
    skipped: str = ""
    """The reason why the shape has no points; empty if it has points."""
    size: PointCount | None = None
    """Number of points, for clouds."""
    width: int | None = None
    """Number of features per point, f; None without features."""
    remarks: str = ""
    """Warnings that were given when the file was read."""


class Manifest(msgspec.Struct, frozen=True, dict=True):
    """The dataset, the preparation and the shapes of a finished cache; in JSON, the content of the manifest file."""

    folder: str
    classes: tuple[str, ...]
    kind: FileKind
    seed: Seed
    """Seed of the dataset. The seed of each mesh is derived from this seed and the shape's name."""
    preparation: Preparation
    """The options that determine the points; other fields have their defaults."""
    entries: tuple[CacheEntry, ...]

    def __post_init__(self) -> None:
        arrays = {*self.preparation.arrays}
        if lacking := [entry.name for entry in self.entries if not entry.skipped and {*entry.checksums} != arrays]:
            raise ValueError(f"{lacking[0]} has no checksums of its arrays")

    @cached_property  # used once per shape, so computing it each time would take quadratic time
    def kept(self) -> list[CacheEntry]:
        """The shapes that have points, in order."""
        return [entry for entry in self.entries if not entry.skipped]

    @property
    def failures(self) -> dict[str, str]:
        """The shapes without points, by name, and the reason for each."""
        return {entry.name: entry.skipped for entry in self.entries if entry.skipped}

    @property
    def points(self) -> int | None:
        """Number of points of each mesh; None for clouds."""
        return self.preparation.cache_points if self.kind == "meshes" else None

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Index of the first point of each kept shape, then the total number of points, [M + 1]."""
        return np.cumsum([0, *(self.points or entry.size or 0 for entry in self.kept)])

    def shape(self, array: str) -> tuple[int, ...]:
        """Return the dimensions of an array; a PointsetError if shapes differ in their number of features."""
        columns = 3
        if array == "features":
            names = ", ".join(self.preparation.further)
            columns = one_width(names, {entry.file: entry.width or 0 for entry in self.kept})
        sets = (int(self.offsets[-1]),) if self.points is None else (len(self.kept), self.points)
        return (*sets, columns)

    def open_arrays(self, folder: Path) -> dict[str, NDArray[Any]]:
        """Memory-map the arrays; a PointsetError if one has an unexpected type or size."""
        arrays = {}
        for name in self.preparation.arrays:
            try:
                array = np.load(folder / f"{name}.npy", mmap_mode="r")
            except (OSError, ValueError, EOFError) as error:
                raise PointsetError(f"{name}.npy cannot be read ({one_line(error, QUOTED)})") from error
            if (array.dtype, array.shape) != (np.dtype("<f4"), self.shape(name)):
                raise PointsetError(f"{name}.npy has {described(array)}, expected {list(self.shape(name))}")
            arrays[name] = array
        return arrays

    def faults(self, folder: Path, progress: bool) -> Iterator[str]:
        """Read all arrays and source files, and yield a sentence for each difference from this manifest.

        Raises:
            PointsetError: an array is missing, or has an unexpected type or size.
        """
        for name, array in self.open_arrays(folder).items():
            rows = array.reshape(int(self.offsets[-1]), -1)
            kept = followed(self.kept, f"checking {name}", "shape", len(self.kept), show=progress)
            for index, entry in enumerate(kept):
                if digest_of(rows[self.offsets[index] : self.offsets[index + 1]]) != entry.checksums[name]:
                    yield f"{name}.npy is damaged in the points of {entry.name}"
        for entry in followed(self.entries, "reading files", "shape", len(self.entries), show=progress):
            try:
                if hash_source(Path(entry.file)) != entry.source.blake2b:
                    yield f"{entry.file} has changed since the cache was built"
            except OSError as error:
                if entry.source.blake2b is not None:
                    yield f"{entry.file} cannot be read any more: {error.strerror or error}"


@dataclass(frozen=True)
class CachePlan:
    """The shapes of one split, and how their points are made."""

    listing: Listing
    split: str
    options: DataOptions

    @property
    def shapes(self) -> list[ShapeFile]:
        """The files of the shapes."""
        return self.listing.of(self.split)

    @property
    def name(self) -> str:
        """Prefix of the name of the cache folder."""
        return f"{self.listing.folder.name}-{self.shapes[0].split}"

    @property
    def preparation(self) -> Preparation:
        """The options that determine the points in the cache; others have their defaults."""
        return Preparation(**{name: getattr(self.options, name) for name in RELEVANT[self.listing.kind]})

    def manifest(self, entries: Sequence[CacheEntry]) -> Manifest:
        """Return the manifest of a cache with these shapes."""
        folder, classes = str(self.listing.folder), tuple(self.listing.classes)
        return Manifest(folder, classes, self.listing.kind, self.seed, self.preparation, tuple(entries))

    @cached_property  # used several times, and depends on all shapes
    def folder(self) -> Path:
        """The folder of the cache. The name of the folder ends in a hash of everything that identifies the content."""
        shapes = [(shape.name, shape.label, str(shape.path)) for shape in self.shapes]
        identity = msgspec.json.encode((CACHE_FORMAT, self.manifest(()), shapes))
        return home() / "cache" / f"{self.name}-{hashlib.sha256(identity).hexdigest()[:16]}"

    @property
    def seed(self) -> int:
        """Seed of the points of meshes; 0 for clouds, whose points are not sampled."""
        return self.options.data_seed if self.listing.kind == "meshes" else 0

    @property
    def unfinished(self) -> Path:
        """The folder with one file per finished shape, while the cache is being built."""
        return self.folder.with_name(self.folder.name + ".partial")


def read_manifest(folder: Path) -> Manifest:
    """Read a cache's manifest; a PointsetError if it is missing or damaged."""
    try:
        return msgspec.json.decode(read_file(folder / MANIFEST_FILE), type=Manifest)
    except FileNotFoundError as error:
        raise PointsetError(f"{MANIFEST_FILE} is missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise PointsetError(f"its {MANIFEST_FILE} cannot be read: {one_line(error, QUOTED)}") from error
