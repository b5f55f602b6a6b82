"""Pooling by mean (Zaheer et al., arXiv 1703.06114)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "mean", packed=True, export=True, statistic="mean")
class MeanPool(StatisticPool):
    """Mean of each feature."""

    statistics = ("mean",)
