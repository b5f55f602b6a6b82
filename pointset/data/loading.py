"""Sets, and single shapes, like those of an earlier run."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.data.dataset import PointSets, load_split
from pointset.data.files.clouds import CloudError, extent_fault
from pointset.data.files.file_kinds import CLOUD_SUFFIXES, MESH_SUFFIXES, has_faces
from pointset.data.files.mesh_reader import read_mesh
from pointset.data.files.meshes import Mesh
from pointset.data.files.scans import read_cloud
from pointset.data.normalize import normalize_points
from pointset.data.options import DataOptions
from pointset.data.sampling import downsample, sample_points
from pointset.data.unusable import OnError, UnreadableShapesError
from pointset.errors import REPEATED, PointsetError, one_line


def load_like(
    description: dict[str, Any],
    split: str,
    data: str | Path | None = None,
    on_error: OnError | None = None,
    points: int | None = None,
) -> PointSets:
    """Another split, or another data set, made into sets like those that `PointSets.describe` tells of.

    Args:
        description: from `describe`.
        split: "train" or "test".
        data: a card's name or a folder; the description's when None.
        on_error: see `DataOptions`; None takes "skip" where the description lacks shapes already, else "raise".
        points: per set; those of the description when None.

    Raises:
        PointsetError: the data is not there, or its classes are not those of the description.
    """
    options = DataOptions.of(description)
    if on_error is not None:
        options = dataclasses.replace(options, on_error=on_error)
    if points is not None:
        options = dataclasses.replace(options, points=points)
    try:
        sets = load_split(data or description["source"], split, options)
    except PointsetError as error:
        if data is None and points is None and not isinstance(error, UnreadableShapesError):
            raise PointsetError(f"{error}; if the data of the run has moved, say where it is with --data") from error
        raise
    if sets.classes != description["classes"]:
        differing = sorted(set(sets.classes) ^ set(description["classes"])) or ["their order"]
        odd = one_line(", ".join(differing), REPEATED)
        raise PointsetError(
            f"{data or description['source']} has other classes than the model was trained on ({odd}): "
            "give data with the same classes"
        )
    return sets


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
        description: from `describe`.
        path: a mesh or cloud file; see `pointset.data.read_mesh` and `read_cloud`.
        points: n; None takes as many as the sets have. A cloud with more gives a random subset.
        seed: of the points.

    Raises:
        PointsetError: the file cannot be read or sampled, or all points of a cloud are at one place; it is named.
    """
    path, mesh, options = Path(path), None, DataOptions.of(description)
    wanted = points or options.points
    if is_cloud_file(path):
        raw = read_cloud(path).points
        if fault := extent_fault([raw]):
            raise CloudError(f"{path}: the cloud {fault}")
        raw = raw[downsample(raw, min(wanted, len(raw)), seed=seed)]
    else:
        mesh = read_mesh(path)
        raw = sample_points(mesh, wanted, seed=seed, sampler=options.sampler)
    return Shape(normalize_points(torch.from_numpy(raw)[None], options.normalize)[0], raw, mesh)


def is_cloud_file(path: Path) -> bool:
    """Whether a file holds points rather than a mesh, by its suffix and, of .ply, its header."""
    suffix = path.suffix.lower()
    return suffix in CLOUD_SUFFIXES and (suffix not in MESH_SUFFIXES or not has_faces(path))
