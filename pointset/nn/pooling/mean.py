"""Pooling by mean (Zaheer et al., arXiv 1703.06114)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "mean", packed=True, export=True, statistic="mean")
class MeanPool(StatisticPool):
    """Mean of each feature.

    Z [B, n, d] with a mask [B, n], or packed rows, gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MeanPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [2.5]
    """

    statistics = ("mean",)
