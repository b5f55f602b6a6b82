"""Rows of an attention map: the values of all points for one inducing point, seed or query, where 1 is uniform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.data.axes import UP_TO_Z
from pointset.data.options import Preparation
from pointset.data.point_sets import PointSets
from pointset.data.preparation import prepare
from pointset.data.sampling import farthest_points
from pointset.errors import PointsetError, described
from pointset.explain.maps import AttentionMap
from pointset.inputs import InputError
from pointset.viz.camera import Up
from pointset.zoo.predicting import list_clouds

ROW_NAMES = {
    "reads": "inducing point",
    "writes": "inducing point",
    "pools": "seed",
    "self": "point",
    "support": "prediction",
}
MEANINGS = {
    "reads": "what each inducing point reads",
    "writes": "which points read each inducing point back",
    "pools": "what each seed pools",
    "self": "what the ringed points read",
    "support": "the support: without all other points the logits are the same",
}


def first_shown(kinds: Sequence[str]) -> int:
    """Return the index of the map to show first: the last of kind "reads", or else of kind "pools"."""
    first = min(kinds, key=list(ROW_NAMES).index)
    return max(index for index, kind in enumerate(kinds) if kind == first)


@dataclass(frozen=True, eq=False)
class PointRows:
    """The values of the points in one attention, for each head and row."""

    layer: str
    kind: str
    values: NDArray[np.float64]
    """[heads, rows, n]: the weight times the number of keys, so that uniform attention is 1 everywhere."""
    keys: int
    """Number of keys. A value divided by this number is the weight."""

    @property
    def row_name(self) -> str:
        """The owner of a row in words: "inducing point", "seed", "point" or "prediction"."""
        return ROW_NAMES[self.kind]

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """The normalised entropy [heads, rows] over the points: 1 is uniform, 0 is a single point."""
        return AttentionMap(self.layer, "reads", torch.from_numpy(self.values), "keys").entropy().numpy()

    def mark(self, row: int) -> int | None:
        """Return the index of the query point of a row if the kind is "self", else None."""
        return row if self.kind == "self" else None

    def chosen(self, axis: int, indices: Sequence[int] | None) -> list[int]:
        """Return `indices` of heads (axis 0) or rows (axis 1), or all for None. PointsetError if one does not exist."""
        what, count = ("head", self.row_name)[axis], self.values.shape[axis]
        if indices is None:
            return list(range(count))
        if not len(indices):
            raise PointsetError(f"{what}s of {self.layer} are empty: give indices from 0 to {count - 1}")
        for index in indices:
            if not 0 <= index < count:
                raise PointsetError(f"{self.layer} has no {what} {index}: give one from 0 to {count - 1}")
        return list(indices)

    def of(self, head: int, row: int) -> NDArray[np.float64]:
        """Return the values [n] of one head and one row. PointsetError if the head or row does not exist."""
        return self.values[self.chosen(0, [head])[0], self.chosen(1, [row])[0]]


def point_rows(attention: Any, points: NDArray[np.float64]) -> PointRows:
    """Return the values of one attention for the points of its cloud. The weights of kind "writes" are transposed.

    Raises:
        PointsetError: `attention` is not a map of one cloud, or neither the queries nor the keys of the map are these
            points.
    """
    if not isinstance(attention, AttentionMap):
        raise InputError(f"attention must be a map from attention_maps, got {described(attention)}")
    weights = np.asarray(attention.weights, dtype=np.float64)
    if weights.ndim == 4:
        several = f"map[0] to map[{len(weights) - 1}]"
        raise PointsetError(f"the map of {attention.layer} is of a batch: give the map of one cloud, {several}")
    if attention.points_are == "neither":
        raise PointsetError(f"{attention.layer} attends among pooled vectors, not points: choose another layer")
    values = weights * weights.shape[2]
    if attention.points_are == "queries":
        values = values.swapaxes(1, 2)
    if values.shape[2] != len(points):
        raise PointsetError(
            f"{attention.layer} has weights for {values.shape[2]} points, but {len(points)} points were given: "
            "give the cloud for which the map was computed, without padding"
        )
    return PointRows(attention.layer, attention.kind, values, weights.shape[2])


def chosen_rows(rows: PointRows, points: NDArray[np.float64], chosen: Sequence[int] | None, most: int) -> list[int]:
    """Return the rows to draw: `chosen`, or all rows for None. For kind "self", None means `most` points far apart."""
    if chosen is None and rows.kind == "self" and len(points) > most:
        return [int(index) for index in farthest_points(points, most, start=0)]
    return rows.chosen(1, chosen)


def cloud_of(points: Any, attention: AttentionMap | None) -> NDArray[np.float64]:
    """Return the cloud [n, 3] of a picture: `points`, or the points of the map if `points` is None."""
    points = getattr(attention, "points", None) if points is None else points
    if points is None:
        raise InputError("points are missing: give the cloud [n, 3] for which the map was computed")
    return as_cloud(points[..., :3] if isinstance(points, Tensor | np.ndarray) and points.ndim else points)


def clouds_of(shapes: Any, up: Up = "z") -> list[NDArray[np.float64]]:
    """Return the clouds [n, 3] of an input of `model.predict`. Files and meshes give 1,024 points, with axis `up`."""
    if isinstance(shapes, PointSets):
        return [as_cloud(shapes[row][0][:, :3]) for row in range(len(shapes))]
    listed, turned = list_clouds(shapes, None, 3), np.array(UP_TO_Z[up])
    arrays = Tensor | np.ndarray
    read = (one if isinstance(one, arrays) else prepare(one, Preparation()).raw @ turned for one in listed)
    return [as_cloud(cloud) for cloud in read]


def finite_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return values as a float64 array of any shape. Raise an InputError with `name` if they are not numbers."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, got {described(values)}") from error


def as_cloud(points: Any) -> NDArray[np.float64]:
    """Return a cloud [n, 3] as a float64 array. Raise a PointsetError if the cloud is empty or not finite."""
    cloud = finite_numbers("points [n, 3]", points)
    if cloud.ndim != 2 or cloud.shape[1] != 3:
        raise PointsetError(f"points must be one cloud [n, 3], got {list(cloud.shape)}")
    if not len(cloud):
        raise PointsetError("the cloud has no points: give at least one")
    if not np.isfinite(cloud).all():
        row = int(np.flatnonzero(~np.isfinite(cloud).all(axis=1))[0])
        raise PointsetError(f"point {row} of the cloud has a coordinate that is not finite: remove it")
    return cloud
