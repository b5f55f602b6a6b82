"""Sets, and single shapes, like those of an earlier run."""

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.configuration import Points, check
from pointset.data.axes import Axis, UsualUp, check_up, turned_up, usual_up
from pointset.data.catalogue.cards import list_cards
from pointset.data.dataset import PointSets, load_split
from pointset.data.files.clouds import Cloud, CloudError, extent_fault
from pointset.data.files.file_kinds import CLOUD_SUFFIXES, MESH_SUFFIXES, has_faces, suffix_of
from pointset.data.files.mesh_reader import read_mesh
from pointset.data.files.meshes import Mesh
from pointset.data.files.scans import read_cloud
from pointset.data.normalize import normalize_points
from pointset.data.options import DataOptions
from pointset.data.sampling import downsample, sample_points
from pointset.data.unusable import OnError, UnreadableShapesError
from pointset.errors import REPEATED, PointsetError, one_line, quoted


def load_like(
    description: dict[str, Any],
    split: str,
    data: str | Path | None = None,
    on_error: OnError | None = None,
    points: int | None = None,
) -> PointSets:
    """Another split, or another dataset, made into sets like those that `PointSets.describe` tells of.

    Args:
        description: from `describe`.
        split: "train" or "test".
        data: a card's name or a folder; the description's when None.
        on_error: see `DataOptions`; None takes "skip" where the description lacks shapes already, else "raise".
        points: per set; those of the description when None.

    Raises:
        PointsetError: the data is not there, or was in memory only, or its classes are not those of the description.
    """
    if data is None and is_in_memory(description):
        raise PointsetError(
            f"the run was trained on data in memory ({quoted(description['source'])}), which is not saved with it: say "
            "which files to take with --data, or use pointset.evaluate in Python"
        )
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


def is_in_memory(description: dict[str, Any]) -> bool:
    """Whether sets were made of something else than files, so that nobody can load them again."""
    return description["source"] not in list_cards() and not Path(description["source"]).is_absolute()


@dataclass(frozen=True, eq=False)
class Shape:
    """One shape from a file, made into a set like those that a model was trained on."""

    points: Tensor
    """float32 [n, d]: normalised coordinates, and the features that the sets have."""
    raw: NDArray[np.float32]
    """[n, 3], the same points in the file's own units, turned as the sets stand."""
    mesh: Mesh | None
    """What they were sampled from, turned as they are; None for a file of points."""


def load_shape_like(
    description: dict[str, Any],
    path: str | Path,
    *,
    points: int | None = None,
    seed: int = 0,
    up: UsualUp | None = None,
) -> Shape:
    """Read one mesh or point cloud and make it a set like those that `PointSets.describe` tells of.

    Args:
        description: from `describe`.
        path: a mesh or cloud file; see `pointset.data.read_mesh` and `read_cloud`.
        points: n; None takes as many as the sets have. A cloud with more gives a random subset.
        seed: of the points.
        up: the file's upward axis; "auto" or None takes that of the sets for a kind of file that they came in, else
            what is usual for its kind, y for OBJ, GLB and glTF, and where nothing is, that of the sets. A shape with
            another than the sets is turned.

    Warns:
        UserWarning: it is turned.

    Raises:
        PointsetError: the file cannot be read or sampled, lacks a feature, or all points of a cloud are at one place;
            it is named.
    """
    path, mesh, options = Path(path), None, DataOptions.of(description)
    if points is not None:
        check("points", points, Points)
    wanted = options.points if points is None else points
    now, upward = file_up(description, path, up)
    if is_cloud_file(path):
        cloud = read_cloud(path, normals=options.has_normals, features=options.further)
        if fault := extent_fault([cloud.points]):
            raise CloudError(f"{path}: the cloud {fault}")
        cloud = cloud[downsample(cloud.points, min(wanted, len(cloud.points)), seed=seed)]
        normals = None if cloud.normals is None else turned_up(cloud.normals, now, upward)
        cloud = dataclasses.replace(cloud, points=turned_up(cloud.points, now, upward), normals=normals)
    else:
        mesh = read_mesh(path)
        mesh = Mesh(turned_up(mesh.vertices, now, upward), mesh.faces)
        if options.further:
            lacking = ", ".join(options.further)
            raise PointsetError(f"{path} is a mesh, and the model wants {lacking} of its points: give a point cloud")
        cloud = Cloud(*sample_points(mesh, wanted, seed=seed, sampler=options.sampler, normals=True))
    beside = [cloud.normals] * options.has_normals + [cloud.features] * bool(options.further)
    normalised = normalize_points(torch.from_numpy(cloud.points)[None], normalization_elsewhere(description))[0]
    rows = torch.cat([normalised, *(torch.from_numpy(array) for array in beside)], dim=1)
    return Shape(rows, cloud.points, mesh)


def normalization_elsewhere(description: Mapping[str, Any]) -> str:
    """How a shape that is not of the data of this description is normalised: as those were, wherever it stands.

    `standardize` leaves a centred cloud where it is, and moves another to where no centred one ever was.
    """
    how = str(description["normalize"])
    return "center-standardize" if how == "standardize" and description.get("centred") else how


def file_up(description: dict[str, Any], path: str | Path, up: UsualUp | None = None) -> tuple[Axis, Axis]:
    """The upward axis of a file and that of the sets; a UserWarning where they differ. See `load_shape_like`."""
    check_up(up)
    wanted = DataOptions.of(description).up or "z"
    usual = wanted if suffix_of(str(path)) in description.get("kinds", ()) else usual_up([str(path)])
    said = None if up in (None, "auto") else up
    now = said or usual or wanted
    if now != wanted:
        # Not named: ten thousand files of one kind are to be one warning.
        which = "the files are said to have" if said else f"{Path(path).suffix.lower()} files usually have"
        leave = "" if said else f"; --up {wanted} (in Python up={wanted!r}) leaves them as they are"
        warnings.warn(
            f"{which} {now.upper()} up, and the model's shapes have {wanted.upper()} up: they are turned{leave}",
            UserWarning,
            stacklevel=4,
        )
    return cast(Axis, now), cast(Axis, wanted)


def is_cloud_file(path: Path) -> bool:
    """Whether a file holds points rather than a mesh, by its suffix and, of .ply, its header."""
    suffix = path.suffix.lower()
    return suffix in CLOUD_SUFFIXES and (suffix not in MESH_SUFFIXES or not has_faces(path))
