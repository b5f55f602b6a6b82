"""The points of one file in a pool, and what its manifest says of it."""

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from numpy.typing import NDArray

from pointset.configuration import Checked, PointCount, Seed
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.options import Sampler
from pointset.data.pool import AS_RELEASED, digest_of
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.sampling import sample_arrays, seed_for
from pointset.errors import PointsetError


@dataclass(frozen=True)
class Sampling(Checked):
    """How shapes become points: meshes are sampled, clouds are read unchanged."""

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
        """Names of the float32 arrays of a shape: points and normals [n, 3], features [n, f]."""
        return ("points", *(name for name in ("normals", "features") if getattr(self, name)))


class Source(msgspec.Struct, frozen=True):
    """One version of a shape's file."""

    bytes: int
    """Size."""
    modified_ns: int
    """Time of the latest modification."""
    blake2b: str | None
    """Digest of the contents; None if they could not be read."""

    @classmethod
    def of(cls, path: Path) -> Self:
        """The current version of a file; an OSError if it cannot be read."""
        facts = path.stat()
        return cls(facts.st_size, facts.st_mtime_ns, hash_source(path))

    def is_current(self, path: Path) -> bool:
        """True if the file still has these contents, which are read only if its size or time differ."""
        try:
            facts = path.stat()
            same = (facts.st_size, facts.st_mtime_ns) == (self.bytes, self.modified_ns)
            return same or hash_source(path) == self.blake2b
        except OSError:
            return self.blake2b is None  # unchanged if it could not be read before either


def hash_source(path: Path) -> str:
    """BLAKE2b digest of the contents, 32 hexadecimal digits; an OSError if they cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


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


PoolArrays = dict[str, NDArray[Any]]
"""Points float32 [n, 3] and, if wanted, normals [n, 3] and features [n, f], by name."""
MadeShape = tuple[PoolEntry, PoolArrays]
"""The entry of a shape in the manifest, and its points; none if the entry is skipped."""


def make_pool_shape(shape: ShapeFile, sampling: Sampling) -> MadeShape:
    """Make the points of one file; after any failure, the entry is skipped and has the reason."""
    source, arrays, reason, caught = Source(-1, -1, None), PoolArrays(), "", list[warnings.WarningMessage]()
    try:
        source = Source.of(shape.path)
        with warnings.catch_warnings(record=True) as caught:  # said once for all files, also by other processes
            warnings.simplefilter("always")
            arrays = _arrays(shape, sampling)
        if not source.is_current(shape.path):
            raise PointsetError("changed while it was read: run again")
    except Exception as error:  # readers can raise many errors, which must not stop the other files
        arrays, reason = {}, _reason(error, shape.path)
    remarks = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    entry = PoolEntry(
        shape.name,
        shape.label,
        str(shape.path),
        source,
        checksums={name: digest_of(array) for name, array in arrays.items()},
        skipped=reason,
        size=len(arrays["points"]) if arrays and sampling.points is None else None,
        width=arrays["features"].shape[1] if "features" in arrays else None,
        remarks="" if reason else "; ".join(remarks),
    )
    return entry, arrays


def _arrays(shape: ShapeFile, sampling: Sampling) -> PoolArrays:
    if sampling.points is None:
        arrays = read_cloud(shape.path, normals=sampling.normals, features=sampling.features).arrays
    else:
        seed, mesh = seed_for(sampling.seed, shape.name), read_mesh(shape.path)
        how: dict[str, Any] = {"seed": seed, "sampler": sampling.sampler, "normals": sampling.normals}
        arrays = sample_arrays(mesh, sampling.points, **how)
    return {name: arrays[name].astype("<f4", copy=False) for name in sampling.arrays}


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.filename == str(path):
        return f"{path}: cannot be read: {error.strerror}"
    words = " ".join(str(error).split())
    if not isinstance(error, PointsetError):
        words = f"{type(error).__name__}: {words}"
    return words if str(path) in words else f"{path}: {words}"
