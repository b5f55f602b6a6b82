"""The plan of a pool: its shapes and their sampling."""

import hashlib
import json
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pointset.configuration import Points, check, check_seed
from pointset.data.catalogue.folders import Listing, ShapeFile
from pointset.data.catalogue.locate import pools_home
from pointset.data.options import SAMPLERS
from pointset.data.pool import AS_RELEASED
from pointset.errors import PointsetError, quoted

FORMAT = 3
"""Version of the pools' files and of the samplers' results; pools of another version have other folders."""
TYPES = {"points": "<f4", "normals": "<f4", "features": "<f4", "labels": "<i4"}
"""The types of the arrays of a pool."""


@dataclass(frozen=True)
class Sampling:
    """How shapes become points: meshes are sampled, clouds are read unchanged."""

    LATER = ("features", "labels")

    points: int | None
    """Points per mesh, P; None for clouds, which keep all points."""
    sampler: str = "uniform"
    """The sampler; `AS_RELEASED` for clouds."""
    seed: int = 0
    """Each mesh is sampled with its own seed, derived from this one and the shape's name."""
    normals: bool = False
    """Keep the unit normal at each point too."""
    features: tuple[str, ...] = ()
    """Names of other point features of clouds to keep."""
    labels: str = ""
    """Name of the column with the labels per point of clouds; for meshes, their parts."""

    @classmethod
    def none(cls, normals: bool, features: tuple[str, ...] = (), labels: str = "") -> Self:
        """The sampling of clouds, which keeps all points."""
        return cls(None, AS_RELEASED, 0, normals, features, labels)

    def __post_init__(self) -> None:
        if self.points is None:
            return
        check("points", self.points, Points)
        check_seed(self.seed)
        if self.sampler not in SAMPLERS:
            raise PointsetError(f"sampler must be one of {', '.join(SAMPLERS)}, got {quoted(self.sampler)}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays of a shape: points and normals [n, 3], features [n, f] and labels [n]; see `TYPES`."""
        beside = {"normals": self.normals, "features": self.features, "labels": self.labels}
        return ("points", *(name for name, wanted in beside.items() if wanted))

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data; `LATER` ones only if set, so that identities of earlier versions stay the same."""
        return {name: value for name, value in vars(self).items() if value or name not in self.LATER}


@dataclass(frozen=True)
class Plan:
    """The shapes of a pool, by class and name, and their sampling."""

    name: str
    """Prefix of the folder's name."""
    shapes: tuple[ShapeFile, ...]
    classes: tuple[str, ...]
    sampling: Sampling

    @classmethod
    def of(cls, name: str, listing: Listing, sampling: Sampling) -> Self:
        """Make a plan from the shapes of one split, sorted by class and name."""
        in_order = sorted(listing.shapes, key=lambda shape: (shape.label, shape.name.split("/")))
        return cls(name, tuple(in_order), tuple(listing.classes), sampling)

    @property
    def root(self) -> Path:
        """The dataset's folder, to which the shapes' names are relative."""
        shape = self.shapes[0]
        return shape.path.parents[len(PurePosixPath(shape.name).parts) - 1]

    @property
    def folder(self) -> Path:
        """The folder of the pool, whose name ends in a hash of the format and the identity."""
        return pools_home() / f"{self.name}-{self._key}"

    @cached_property  # used several times, and depends on all shapes
    def _key(self) -> str:
        return hashlib.sha256(json.dumps([FORMAT, self.identity], sort_keys=True).encode()).hexdigest()[:16]

    @property
    def identity(self) -> dict[str, Any]:
        """What distinguishes this pool: dataset, classes, sampling, and names, labels and files of its shapes."""
        return {
            "folder": str(self.root),
            "classes": list(self.classes),
            **self.sampling.as_dict(),
            "names": [[shape.name, shape.label, str(shape.path)] for shape in self.shapes],
        }


def build_command(root: str | Path, sampling: Sampling, *flags: str) -> str:
    """The command that builds the pools of a folder of meshes."""
    words = ["pointset", "data", "build", str(root), "--points", str(sampling.points)]
    words += ["--sampler", sampling.sampler, "--seed", str(sampling.seed)]
    return shlex.join([*words, *(["--normals"] if sampling.normals else []), *flags])
