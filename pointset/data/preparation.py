"""Prepare a shape: from a file, mesh, cloud or array to the points that a model takes.

All functions that take shapes call `prepare`, so that a shape has the same points and the same prediction in each.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from pointset.configuration import MOST_POINTS, check
from pointset.data.axes import Axis, FileUp, rotate_up
from pointset.data.local_feature_cache import stored_local_features
from pointset.data.normalize import is_standardized, normalize_rows
from pointset.data.options import Preparation
from pointset.data.outliers import merge_duplicates, prepare_cloud
from pointset.data.readers.clouds import Cloud, require_cloud, table_of
from pointset.data.readers.meshes import Mesh, mesh_of
from pointset.data.readers.reading import read_shape
from pointset.data.rotations import Columns
from pointset.data.sampling import downsample, sample_points
from pointset.errors import PointsetError, described
from pointset.inputs import InputError, as_points


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared shape."""

    points: Float[Tensor, "n d"]
    """Normalised coordinates, features and local features, float32."""
    raw: Float[ndarray, "n 3"]
    """The same points in the units of the shape, relative to `Cloud.corner`, with the model's upward axis."""
    mesh: Mesh | None = None
    """The mesh from which the points were sampled, with the same upward axis; None if the shape was no mesh."""


def prepare(
    shape: Any,
    preparation: Preparation,
    *,
    points: int | None = None,
    seed: int = 0,
    up: str | None = None,
    remove_outliers: bool | None = None,
    name: str = "",
) -> Prepared:
    """Prepare one shape in the same way as training shapes.

    Args:
        shape: the path of a mesh or a point cloud; a `Mesh` or a mesh of trimesh; a `Cloud`; an array, tensor or list
            of rows [n, 3 + features]; or a DataFrame with columns x, y, z and features. A `Prepared` is returned
            unchanged.
        preparation: the preparation of the training shapes, such as `model.preparation`.
        points: maximum number of points of the set; None means that of the preparation.
        seed: seed of the points.
        up: the shape's upward axis. "auto" or None means the axis that the file (DAE) or the `Mesh` states. Without
            such a statement, a file in the format of the training files has their axis. Another file has the usual axis
            of its format (y for OBJ, GLB and glTF, z for 3MF), if any. Other shapes have the axis of the training sets.
        remove_outliers: whether to remove outliers of clouds other than arrays; None means as in training.
        name: name of the shape, for warnings; by default its path.

    Returns:
        The prepared shape. The same shape and seed give the same points.

    Raises:
        PointsetError: a file cannot be read (the message names it), a feature is lacking, or points are not finite.

    Example:
        >>> preparation = pointset.data.Preparation(points=16, normalize="unit-sphere")
        >>> pointset.data.prepare(X[0], preparation).points.shape
        torch.Size([16, 3])
    """
    check("up", up, FileUp | None)
    if isinstance(shape, Prepared):
        return shape
    shape = mesh_of(shape)
    changes: dict[str, Any] = {"points": points, "remove_outliers": remove_outliers}
    wanted = replace(preparation, **{field: value for field, value in changes.items() if value is not None})
    from_file = isinstance(shape, str | Path)
    if from_file:
        path = Path(shape)
        name = name or str(path)
        shape = read_shape(path, normals=wanted.has_normals, features=wanted.further)
    stated = shape.up if isinstance(shape, Mesh) else ""
    now = (None if up == "auto" else up) or stated or (_file_up(path, wanted) if from_file else wanted.up)
    given = isinstance(shape, Mesh | Cloud)
    shape = shape if given else _as_cloud(shape, wanted)
    if isinstance(shape, Mesh):
        return _prepare_mesh(shape, wanted, now, seed)
    shape = prepare_cloud(shape, name or "the cloud", wanted) if given else merge_duplicates(shape)
    if from_file and len(shape.points) > wanted.points:  # without a file name, so that Python shows it once
        warnings.warn(
            f"of clouds with more points, {wanted.points:,} random points are used", UserWarning, stacklevel=3
        )
    return _prepare_cloud(shape, wanted, now, seed, untouched=not given)


def _prepare_mesh(mesh: Mesh, wanted: Preparation, now: str, seed: int) -> Prepared:
    if lacking := ", ".join(wanted.further):
        raise PointsetError(f"a mesh has no {lacking}, which the model needs for each point: give a point cloud")
    mesh = Mesh(rotate_up(mesh.vertices, now, wanted.up), mesh.faces)
    # In training, a set is a random subset of evenly spread cached points, so it is not evenly spread itself.
    drawn = wanted.cloud_points if wanted.sampler == "uniform" else max(wanted.cloud_points, wanted.cache_points)
    if wanted.points == MOST_POINTS:  # a model before training has no number of points
        drawn = wanted.cache_points
    cloud = Cloud(*sample_points(mesh, drawn, seed=seed, sampler=wanted.sampler, normals=True))
    if drawn > wanted.cloud_points:
        cloud = cloud[downsample(cloud.points, wanted.cloud_points, seed=seed)]
    return _finished(cloud, wanted, mesh)


def _prepare_cloud(cloud: Cloud, wanted: Preparation, now: str, seed: int, *, untouched: bool) -> Prepared:
    fewest = int(wanted.least * min(wanted.cloud_points, wanted.cache_points))
    if wanted.local_features != "none" and len(cloud.points) < fewest:
        warnings.warn(
            f"clouds of fewer than {fewest:,} points give inaccurate local features, which the model "
            "needs: a model of coordinates alone is more accurate on them (`pointset zoo --pretrained`)",
            UserWarning,
            stacklevel=4,
        )
    if len(cloud.points) > wanted.cloud_points:
        cloud = cloud[downsample(cloud.points, wanted.cloud_points, seed=seed)]
    normals = None if cloud.normals is None else rotate_up(cloud.normals, now, wanted.up)
    cloud = replace(cloud, points=rotate_up(cloud.points, now, wanted.up), normals=normals)
    return _finished(cloud, wanted, untouched=untouched)


def _finished(cloud: Cloud, wanted: Preparation, mesh: Mesh | None = None, *, untouched: bool = False) -> Prepared:
    """Return the first `wanted.points` points of a cloud, with local features computed from the whole cloud."""
    if lacking := ", ".join(name for name in wanted.arrays if name not in cloud.arrays):
        raise PointsetError(f"the cloud has no {lacking}, which the model needs for each point: add them")
    parts = [cloud.arrays[name] for name in wanted.arrays]
    if wanted.local_features != "none":
        parts.append(stored_local_features(cloud.points, wanted.local_features))
    rows = torch.from_numpy(np.hstack(parts)[: wanted.points].astype(np.float32))[None]
    raw = rows[..., :3]
    # Sets from `standardize` are not changed: a random subset of a centred shape is not exactly centred.
    as_given = untouched and wanted.normalize == "center-standardize" and bool(is_standardized(raw))
    columns = Columns(wanted.has_normals, wanted.local_features)
    points = normalize_rows(rows, "none" if as_given else wanted.normalize, None, columns, wanted.up)[0]
    return Prepared(points, np.ascontiguousarray(raw[0]), mesh)


def is_one_shape(shapes: Any) -> bool:
    """Return True if a value is one shape that `prepare` takes; False for an array and for a list of shapes."""
    if isinstance(shapes, list | tuple):  # one shape if it has rows of numbers
        return bool(shapes) and isinstance(shapes[0], list | tuple) and isinstance(next(iter(shapes[0]), None), Real)
    return isinstance(mesh_of(shapes), str | Path | Mesh | Cloud | Prepared) or hasattr(shapes, "columns")


def _as_cloud(shape: Any, wanted: Preparation) -> Cloud:
    if isinstance(shape, list | tuple):
        with suppress(ValueError):  # rows of several lengths are refused below
            shape = np.asarray(shape)
    rows = as_points(table_of(shape, wanted.features), wanted.inputs, None, "[n, {}]").detach().cpu()
    if rows.dim() != 2:
        raise InputError(f"points must be [n, {wanted.inputs}], got {described(shape)}")
    table = (rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows).numpy()
    first = 6 if wanted.has_normals else 3
    return require_cloud(table[:, :first], table[:, first:] if wanted.inputs > first else None)


def _file_up(path: Path, wanted: Preparation) -> FileUp:
    """Return the assumed upward axis of a file, with a UserWarning if it differs from that of the training shapes."""
    usual = wanted.usual_up(str(path))
    if usual not in (wanted.up, wanted.files_up):
        warn_of_rotation(f"{path.suffix.lower()} files usually have", wanted.up)
    return usual


def warn_of_rotation(usually: str, wanted: Axis) -> None:
    """Warn that files are rotated because their format usually has another upward axis than the model's shapes.

    The message does not name the file: Python then shows it once for any number of files.
    """
    other = "Y" if wanted == "z" else "Z"
    warnings.warn(
        f"{usually} {other} up, and the model's shapes have {wanted.upper()} up: they are rotated; --up {wanted} "
        f"(in Python up={wanted!r}) does not rotate them",
        UserWarning,
        stacklevel=4,
    )
