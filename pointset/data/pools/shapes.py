"""The points of one file in a pool, and what its manifest says of it."""

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec
from numpy.typing import NDArray

from pointset.configuration import Checked, PointCount, Seed
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.options import Sampler
from pointset.data.pool import AS_RELEASED, digest_of
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.readers.scenes import files_beside
from pointset.data.sampling import sample_arrays, seed_for
from pointset.errors import PointsetError

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
    remarks: str = ""
    """The warnings that were given when it was read."""

    @property
    def is_current(self) -> bool:
        """True if the shape's file has not changed."""
        return self.source.is_current(Path(self.file))


PoolArrays = dict[str, NDArray[Any]]
"""Points float32 [n, 3] and, if wanted, normals [n, 3] and features [n, f], by name."""
MadeShape = tuple[PoolEntry, PoolArrays]
"""The entry of a shape in the manifest, and its points; none if the entry is skipped."""


def make_pool_shape(shape: ShapeFile, sampling: Sampling) -> MadeShape:
    """Make the points of one file; after any failure, the entry is skipped and has the reason."""
    source, arrays, reason, remarks = Source(-1, -1, None), PoolArrays(), "", ""
    try:
        source = Source.of(shape.path)
        with warnings.catch_warnings(record=True) as caught:  # said once for all files, also by other processes
            warnings.simplefilter("always")
            arrays = _arrays(shape, sampling)
        own = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        remarks = "; ".join(dict.fromkeys(own))
        if not source.is_current(shape.path):
            raise PointsetError("changed while it was read: run again")
    except Exception as error:  # readers can raise many errors, which must not stop the other files
        arrays, reason = {}, _reason(error, shape.path)
    entry = PoolEntry(
        shape.name,
        shape.label,
        str(shape.path),
        source,
        checksums={name: digest_of(array) for name, array in arrays.items()},
        skipped=reason,
        size=len(arrays["points"]) if arrays and sampling.points is None else None,
        width=arrays["features"].shape[1] if "features" in arrays else None,
        remarks=remarks,
    )
    return entry, arrays


def _arrays(shape: ShapeFile, sampling: Sampling) -> PoolArrays:
    if sampling.points is None:
        arrays = read_cloud(shape.path, normals=sampling.normals, features=sampling.features).arrays
    else:
        seed, mesh = seed_for(sampling.seed, shape.name), read_mesh(shape.path)
        how: dict[str, Any] = {"seed": seed, "sampler": sampling.sampler, "normals": sampling.normals}
        arrays = sample_arrays(mesh, sampling.points, **how)
    return {name: arrays[name].astype(ARRAY_TYPES[name], copy=False) for name in sampling.arrays}


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.filename == str(path):
        return f"{path}: cannot be read: {error.strerror}"
    words = " ".join(str(error).split())
    if not isinstance(error, PointsetError):
        words = f"{type(error).__name__}: {words}"
    return words if str(path) in words else f"{path}: {words}"
