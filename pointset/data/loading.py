"""The sets that a run's options describe, and sets like those of an earlier run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.configuration import DataOptions
from pointset.data.dataset import AS_RELEASED, PointSets, load_dataset
from pointset.data.files.clouds import read_cloud
from pointset.data.files.file_kinds import CLOUD_SUFFIXES, has_faces
from pointset.data.files.meshes import MESH_SUFFIXES, Mesh, read_mesh
from pointset.data.normalize import normalize_points
from pointset.data.sampling import downsample, sample_points
from pointset.errors import PointsetError


def load_sets(data: str | Path, options: DataOptions, *, progress: bool = True) -> tuple[PointSets, PointSets]:
    """The training and the test sets that the options describe."""
    return load_split(data, "train", options, progress=progress), load_split(data, "test", options, progress=progress)


def load_like(description: dict[str, Any], split: str, data: str | Path | None = None) -> PointSets:
    """Another split, or another data set, made into sets like those that `PointSets.describe` tells of.

    Raises:
        PointsetError: the data is not there, or its classes are not those of the description.
    """
    sampler = description["sampler"]
    options = DataOptions(
        points=description["points"],
        pool_points=description["pool"],
        normalize=description["normalize"],
        sampler="uniform" if sampler == AS_RELEASED else sampler,
        data_seed=description["seed"],
        split_seed=description["split_seed"],
        variant=description["variant"],
        up=description["up"],
    )
    try:
        sets = load_split(data or description["source"], split, options)
    except PointsetError as error:
        if data is None:
            raise PointsetError(f"{error}; if the data of the run has moved, say where it is with --data") from error
        raise
    if sets.classes != description["classes"]:
        odd = sorted(set(sets.classes) ^ set(description["classes"])) or ["their order"]
        raise PointsetError(
            f"{data or description['source']} has other classes than the model was trained on ({', '.join(odd)}): "
            "give data with the same classes"
        )
    return sets


def load_split(data: str | Path, split: str, options: DataOptions, *, progress: bool = True) -> PointSets:
    """One split of a card or folder under the options."""
    return load_dataset(
        data,
        split,
        options.points,
        pool_points=options.pool_points,
        normalize=options.normalize,
        sampler=options.sampler,
        seed=options.data_seed,
        split_seed=options.split_seed,
        variant=options.variant,
        up=options.up,
        progress=progress,
    )


@dataclass(frozen=True, eq=False)
class Shape:
    """One shape from a file, made into a set like those that a model was trained on."""

    points: Tensor
    """float32 [n, 3], normalised."""
    raw: NDArray[np.float32]
    """[n, 3], the same points in the file's own units."""
    mesh: Mesh | None
    """What they were sampled from; None for a file of points."""


def load_shape_like(
    description: dict[str, Any], path: str | Path, *, points: int | None = None, seed: int = 0
) -> Shape:
    """Read one mesh or point cloud and make it a set like those that `PointSets.describe` tells of.

    Args:
        description: what `describe` said of the sets.
        path: a mesh file, or one with points; see `pointset.data.read_mesh` and `read_cloud`.
        points: to sample, n; as many as the sets have when None. Of a cloud with more, a random subset is taken.
        seed: of the points.

    Raises:
        PointsetError: the file cannot be read or sampled; the message names it.
    """
    path, wanted, mesh = Path(path), points or description["points"], None
    suffix = path.suffix.lower()
    if suffix in CLOUD_SUFFIXES and (suffix not in MESH_SUFFIXES or not has_faces(path)):
        raw = read_cloud(path).points
        raw = raw[downsample(raw, min(wanted, len(raw)), seed=seed)]
    else:
        sampler = "uniform" if description["sampler"] == AS_RELEASED else description["sampler"]
        mesh = read_mesh(path)
        raw = sample_points(mesh, wanted, seed=seed, sampler=sampler)
    return Shape(normalize_points(torch.from_numpy(raw)[None], description["normalize"])[0], raw, mesh)
