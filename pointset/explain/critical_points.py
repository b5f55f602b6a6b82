"""Critical points, which a max pooling selects, and the influence of each point on the pooled vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.maps import as_cloud_of, attention_maps
from pointset.nn.modes import in_evaluation_mode
from pointset.nn.pooling.statistics import MaxPool
from pointset.zoo.classifiers import SetClassifier


def critical_points(model: nn.Module, points: Tensor) -> Tensor:
    """For each point, the number of features for which the max pool selects it.

    Points with a count of 0 do not affect the pooled vector; the others are the critical point set (Qi et al.,
    PointNet, arXiv 1612.00593, section 4.3). If several points have the largest value, the first one is counted.

    Args:
        model: a zoo model that pools by max, such as rff-max or isab16-max. If its encoder has attention, the row of a
            point also contains what the point has read from others.
        points: [n, 3], one cloud.

    Returns:
        int64 [n]; the counts sum to the width of the pooled vector.

    Raises:
        PointsetError: the model does not pool by max, or the points are not [n, 3], n at least 1 and finite.

    Example:
        >>> from pointset.explain.critical_points import critical_points
        >>> counts = critical_points(pointset.create_model("rff-max", classes=2, dim=16), test.points[0])
        >>> counts.shape, int(counts.sum())
        (torch.Size([32]), 16)
    """
    if not isinstance(model, SetClassifier) or not isinstance(model.pool, MaxPool):
        name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
        raise PointsetError(f"{name} does not pool by max: critical points need a model such as rff-max")
    points = as_cloud_of(model, points)
    device = next(model.parameters()).device
    with torch.no_grad(), in_evaluation_mode(model):
        rows = model.encode(points[None].to(device))[0]
    return torch.bincount(rows.argmax(dim=0).cpu(), minlength=len(points))


@dataclass(frozen=True, eq=False)
class Pooled:
    """One number for each point of a cloud."""

    kind: Literal["attention", "features"]
    """`attention`: weight times the number of points (1 is uniform), mean over heads and seeds. `features`: number of
    features for which a max pooling selects the point."""
    values: Tensor
    """[n], on the CPU."""


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
    pools = [pool.relative().mean(dim=(0, 1)) for pool in maps if (pool.kind, pool.points_are) == ("pools", "keys")]
    return Pooled("attention", torch.stack(pools).mean(dim=0)) if pools else None
