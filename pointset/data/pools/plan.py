"""The plan of a pool: its shapes, and how each becomes points."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pointset.configuration import Points, check, check_seed
from pointset.data.catalogue.folders import Listing, ShapeFile
from pointset.data.catalogue.home import pools_home
from pointset.data.options import SAMPLERS
from pointset.data.pool import AS_RELEASED
from pointset.errors import PointsetError, quoted

FORMAT = 3
"""Changes with a pool's files and with the points that a sampler gives; pools of another format have another folder."""


@dataclass(frozen=True)
class Sampling:
    """How every shape of a dataset becomes points: a mesh is sampled, a cloud is read as it is."""

    points: int | None
    """Per shape, P; None for clouds, which keep all that they have."""
    sampler: str = "uniform"
    """`AS_RELEASED` for clouds."""
    seed: int = 0
    """Each mesh is sampled with its own seed, made from this one and the shape's name."""
    normals: bool = False
    """Keep the unit normal at each point too."""
    features: tuple[str, ...] = ()
    """Other numbers of each point of clouds to keep, by name."""

    @classmethod
    def none(cls, normals: bool, features: tuple[str, ...] = ()) -> Self:
        """The reading of clouds."""
        return cls(None, AS_RELEASED, 0, normals, features)

    def __post_init__(self) -> None:
        if self.points is None:
            return
        if self.points < 1:
            raise PointsetError(f"a pool must have at least 1 point per shape, got {quoted(self.points)}")
        check("points", self.points, Points)
        check_seed(self.seed)
        if self.sampler not in SAMPLERS:
            raise PointsetError(f"sampler must be one of {', '.join(SAMPLERS)}, got {quoted(self.sampler)}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays of a shape, each float32 [n, 3], but features [n, f]."""
        return ("points", *["normals"] * self.normals, *["features"] * bool(self.features))

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data; features only where there are some: pools did not always know them."""
        found = {**vars(self), "features": list(self.features)}
        return found if self.features else {name: value for name, value in found.items() if name != "features"}


@dataclass(frozen=True)
class Plan:
    """The shapes of a pool, by class and name, and their sampling."""

    name: str
    """Beginning of the folder's name."""
    shapes: tuple[ShapeFile, ...]
    classes: tuple[str, ...]
    sampling: Sampling

    @classmethod
    def of(cls, name: str, listing: Listing, sampling: Sampling) -> Self:
        """Put the shapes of one split in order."""
        in_order = sorted(listing.shapes, key=lambda shape: (shape.label, shape.name.split("/")))
        return cls(name, tuple(in_order), tuple(listing.classes), sampling)

    @property
    def root(self) -> Path:
        """The dataset's folder, which the shapes' names are relative to."""
        shape = self.shapes[0]
        return shape.path.parents[len(PurePosixPath(shape.name).parts) - 1]

    @property
    def folder(self) -> Path:
        """Where the pool is, or will be; the name ends in a hash of the format and the identity."""
        return pools_home() / f"{self.name}-{self._key}"

    @cached_property  # asked for several times, and all shapes are gone through for it
    def _key(self) -> str:
        return hashlib.sha256(json.dumps([FORMAT, self.identity], sort_keys=True).encode()).hexdigest()[:16]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that tells this pool from others."""
        names = [(shape.name, shape.label, str(shape.path)) for shape in self.shapes]
        return identity(self.root, self.classes, self.sampling, names)


def identity(
    root: str | Path, classes: Sequence[str], sampling: Sampling, names: Sequence[tuple[str, int, str]]
) -> dict[str, Any]:
    """Dataset, classes, sampling, and (name, label, file) of all shapes: a pool with the same is the same."""
    return {
        "folder": str(root),
        "classes": list(classes),
        **sampling.as_dict(),
        "names": [list(name) for name in names],
    }


def build_command(root: str | Path, sampling: Sampling, *flags: str) -> str:
    """The command that makes the pools of a folder of meshes."""
    words = ["pointset", "data", "build", str(root), "--points", str(sampling.points)]
    words += ["--sampler", sampling.sampler, "--seed", str(sampling.seed)]
    return shlex.join([*words, *(["--normals"] if sampling.normals else []), *flags])
