"""Pooling by sum (Zaheer et al., arXiv 1703.06114, theorem 2)."""

from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import register


@register("pooling", "sum", packed=True, export=True)
class SumPool(StatisticPool):
    """Sum of each feature; unlike the mean, it depends on the number of elements.

    Z [B, n, d] with a mask [B, n], or packed rows, gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.SumPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [5.0]
    """

    statistics = ("sum",)
