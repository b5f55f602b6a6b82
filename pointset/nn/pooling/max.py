"""Pooling by maximum (Zaheer et al., arXiv 1703.06114; Qi et al., arXiv 1612.00593)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "max", packed=True, export=True)
class MaxPool(StatisticPool):
    """Largest value of each feature.

    Z [B, n, d] with a mask [B, n], or packed rows, gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MaxPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [4.0]
    """

    statistics = ("max",)
