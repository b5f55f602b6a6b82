"""The plan of a pool, its shapes and their sampling; and the manifest of a finished pool.

A pool is a folder with `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds; on request
`normals.npy` of the same shape, and `features.npy` with f numbers per point; and `manifest.json`, with digests of each
shape's numbers and of its file, for `pointset data verify`. Pools of another format are refused.
"""

import hashlib
import io
import json
import math
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

import pointset
from pointset.configuration import Checked, PointCount, Seed
from pointset.data.catalogue.folders import Listing, ShapeFile
from pointset.data.catalogue.locate import pools_home
from pointset.data.options import Sampler
from pointset.data.pool import AS_RELEASED, digest_of, one_width
from pointset.data.readers.scenes import files_beside
from pointset.errors import QUOTED, PointsetError, described, one_line
from pointset.runs.files import read_file, require_file
from pointset.runs.progress import followed

POOL_FORMAT = 3
"""Version of the pools' files and of the samplers' results; pools of another version have other folders."""
MANIFEST_FILE = "manifest.json"
ARRAY_TYPES = {"points": "<f4", "normals": "<f4", "features": "<f4"}
"""The types of the arrays of a pool."""


@dataclass(frozen=True)
class Sampling(Checked):
    """How shapes become points: meshes are sampled, clouds are read unchanged."""

    LATER: ClassVar = ("features",)

    points: PointCount | None
    """Points per mesh, P; None for clouds, which keep all points."""
    sampler: Sampler | Literal["as released"] = "uniform"
    """The sampler; `AS_RELEASED` for clouds."""
    seed: Seed = 0
    """Each mesh is sampled with its own seed, derived from this one and the shape's name."""
    normals: bool = False
    """Keep the unit normal at each point too."""
    features: tuple[str, ...] = ()
    """Names of other point features of clouds to keep."""

    @classmethod
    def none(cls, normals: bool, features: tuple[str, ...] = ()) -> Self:
        """The sampling of clouds, which keeps all points."""
        return cls(None, AS_RELEASED, 0, normals, features)

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays of a shape: points and normals [n, 3], features [n, f]; see `ARRAY_TYPES`."""
        return ("points", *(name for name in ("normals", "features") if getattr(self, name)))


@dataclass(frozen=True)
class PoolPlan:
    """The shapes of a pool, by class and name, and their sampling."""

    name: str
    """Prefix of the folder's name."""
    shapes: tuple[ShapeFile, ...]
    classes: tuple[str, ...]
    sampling: Sampling

    @classmethod
    def of(cls, name: str, listing: Listing, sampling: Sampling) -> Self:
        """Make a plan from the shapes of one split."""
        return cls(name, tuple(listing.shapes), tuple(listing.classes), sampling)

    @property
    def root(self) -> Path:
        """The dataset's folder, to which the shapes' names are relative."""
        shape = self.shapes[0]
        return shape.path.parents[len(PurePosixPath(shape.name).parts) - 1]

    @cached_property  # used several times, and depends on all shapes
    def folder(self) -> Path:
        """The folder of the pool, whose name ends in a hash of the format and of all that distinguishes the pool."""
        identity = {
            "folder": str(self.root),
            "classes": list(self.classes),
            **self.sampling.as_dict(),
            "names": [[shape.name, shape.label, str(shape.path)] for shape in self.shapes],
        }
        key = hashlib.sha256(json.dumps([POOL_FORMAT, identity], sort_keys=True).encode()).hexdigest()[:16]
        return pools_home() / f"{self.name}-{key}"


def build_command(root: str | Path, sampling: Sampling, *flags: str) -> str:
    """The command that builds the pools of a folder of meshes."""
    words = ["pointset", "data", "build", str(root), "--pool-points", str(sampling.points)]
    words += ["--sampler", sampling.sampler, "--data-seed", str(sampling.seed)]
    return shlex.join([*words, *(["--normals"] if sampling.normals else []), *flags])


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
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def _size_and_time(path: Path) -> tuple[int, int]:
    facts = [file.stat() for file in _files(path)]
    return sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


def _files(path: Path) -> list[Path]:
    """The file and, for .gltf and .glb, the external buffers that it names."""
    return [path, *(files_beside(path) if path.suffix.lower() in (".gltf", ".glb") else ())]


class PoolEntry(msgspec.Struct, frozen=True, omit_defaults=True):
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
    entries: tuple[PoolEntry, ...]

    @cached_property  # used once per shape, so computing it each time would take quadratic time
    def kept(self) -> list[PoolEntry]:
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
        columns: tuple[int, ...] = (3,)
        if array == "features":
            names = ", ".join(self.sampling.features)
            columns = (one_width(names, {entry.file: entry.width or 0 for entry in self.kept}),)
        points = self.sampling.points
        return (int(self.offsets[-1]), *columns) if points is None else (len(self.kept), points, *columns)

    def open_arrays(self, folder: Path) -> dict[str, NDArray[Any]]:
        """Memory-map the arrays; a PointsetError if one has another type or size than was written."""
        arrays = {}
        for name in self.sampling.arrays:
            try:
                require_file(folder / f"{name}.npy", None)
                array = np.load(folder / f"{name}.npy", mmap_mode="r")
            except (OSError, ValueError, EOFError, PointsetError) as error:
                raise PointsetError(f"{name}.npy cannot be read ({one_line(error, QUOTED)})") from error
            if (array.dtype, array.shape) != (np.dtype(ARRAY_TYPES[name]), self.shape(name)):
                raise PointsetError(f"{name}.npy has {described(array)}, and {list(self.shape(name))} were written")
            arrays[name] = array
        return arrays

    def damages(self, folder: Path, progress: bool = False) -> Iterator[str]:
        """What is not as it was written in the files of the arrays, as sentences."""
        for name in self.sampling.arrays:
            try:
                require_file(folder / f"{name}.npy", None)
                with (folder / f"{name}.npy").open("rb") as file:
                    yield from (f"{name}.npy {damage}" for damage in self._damages(name, file, progress))
            except (OSError, PointsetError) as error:
                yield f"{name}.npy cannot be read ({one_line(error, QUOTED)})"

    def _damages(self, name: str, file: BinaryIO, progress: bool) -> Iterator[str]:
        header, shape = io.BytesIO(), self.shape(name)
        write_header(header, name, shape)
        total = np.dtype(ARRAY_TYPES[name]).itemsize * math.prod(shape)
        row = total // max(int(self.offsets[-1]), 1)
        size, written = os.fstat(file.fileno()).st_size, header.tell() + total
        if size != written:
            yield f"has {size:,} bytes, and {written:,} were written"
            return
        if file.read(header.tell()) != header.getvalue():
            yield "is damaged at its start"
        entries = followed(self.kept, f"checking {name}", "shape", len(self.kept), show=progress)
        for entry, points in zip(entries, np.diff(self.offsets).tolist(), strict=True):
            content = np.frombuffer(file.read(points * row), np.uint8)
            if digest_of(content) != entry.checksums.get(name):
                yield f"is damaged in the points of {entry.name}"

    def require_current(self) -> None:
        """Raise a PointsetError if a shape's file has changed since the pool was made."""
        if changed := [entry.file for entry in self.entries if not entry.is_current]:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise PointsetError(f"{changed[0]}{more} has changed since the pool was made")

    def as_json(self) -> bytes:
        """The manifest as a file."""
        head = {"format": POOL_FORMAT, "version": pointset.__version__, "folder": self.folder, "classes": self.classes}
        content = {**head, **self.sampling.as_dict(), "shapes": self.entries}
        return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def write_header(file: BinaryIO, name: str, shape: tuple[int, ...]) -> None:
    """Write the start of the file of an array."""
    np.lib.format.write_array_header_1_0(file, {"descr": ARRAY_TYPES[name], "fortran_order": False, "shape": shape})


def read_manifest(folder: Path) -> Manifest:
    """Read a pool's manifest; a PointsetError if it is missing, damaged or of another format."""
    try:
        content = msgspec.json.decode(read_file(folder / MANIFEST_FILE))
        if content["format"] != POOL_FORMAT:
            raise PointsetError(f"it has format {content['format']}, and this version of pointset reads {POOL_FORMAT}")
        entries = msgspec.convert(content["shapes"], tuple[PoolEntry, ...])
        manifest = Manifest(content["folder"], tuple(content["classes"]), msgspec.convert(content, Sampling), entries)
        if any(not {*manifest.sampling.arrays} <= {*entry.checksums} for entry in manifest.kept):
            raise ValueError("a shape has no digest of its points")
        return manifest
    except FileNotFoundError as error:
        raise PointsetError(f"{MANIFEST_FILE} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {one_line(error, QUOTED)}"
        raise PointsetError(f"its {MANIFEST_FILE} cannot be read: {reason}") from error
