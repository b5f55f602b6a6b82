"""The influence of each point on the pooled vector: one number per point, for attention and max pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.critical_points import critical_points
from pointset.explain.maps import as_cloud_of, attention_maps
from pointset.inputs import takes
from pointset.nn.pooling.statistics import MaxPool
from pointset.zoo.classifiers import SetClassifier


@dataclass(frozen=True, eq=False)
class Pooled:
    """One number for each point of a cloud."""

    kind: Literal["attention", "features"]
    """`attention`: weight times the number of points (1 is uniform), mean over heads and seeds. `features`: number of
    features for which a max pooling selects the point."""
    values: Tensor
    """[n], on the CPU."""


@takes(model=nn.Module)
def pooled_from(model: nn.Module, points: Tensor) -> Pooled | None:
    """The contribution of each point of one cloud [n, inputs] to the pooling of a model.

    Returns:
        None if the pooling treats all points alike, as a mean does. If several poolings are joined, only those with
        attention count.

    Raises:
        PointsetError: the points do not fit the model.
    """
    points = as_cloud_of(model, points)
    if isinstance(model, SetClassifier) and isinstance(model.pool, MaxPool):
        return Pooled("features", critical_points(model, points))
    try:
        maps = attention_maps(model, points)
    except PointsetError:  # the points were checked above, so the reason is that the model has no attention
        return None
    found = [one.relative().mean(dim=(0, 1)) for one in maps if (one.kind, one.points_are) == ("pools", "keys")]
    return Pooled("attention", torch.stack(found).mean(dim=0)) if found else None
