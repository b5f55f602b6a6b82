"""Pooling by sum (Zaheer et al., arXiv 1703.06114, theorem 2)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "sum", packed=True, export=True)
class SumPool(StatisticPool):
    """Sum of each feature: the one that can count."""

    statistics = ("sum",)
