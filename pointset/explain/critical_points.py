"""Critical points, which a max pooling selects."""

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.maps import as_cloud_of
from pointset.nn.layers import in_evaluation_mode
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
