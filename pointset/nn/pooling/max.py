"""Pooling by maximum (Zaheer et al., arXiv 1703.06114; Qi et al., arXiv 1612.00593)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "max", packed=True, export=True)
class MaxPool(StatisticPool):
    """Largest value of each feature."""

    statistics = ("max",)
