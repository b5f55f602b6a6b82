"""Pooling by maximum and mean, as DGCNN has it (Wang et al., arXiv 1801.07829, section 5.1)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "max+mean", packed=True, export=True)
class MaxMeanPool(StatisticPool):
    """Largest value and mean of each feature side by side, the d maxima first: [B, 1, 2 d]."""

    statistics = ("max", "mean")
