"""Poolings by statistics of each feature: maximum, mean, sum, and those of a user.

Sources: Deep Sets (Zaheer et al., arXiv 1703.06114, theorem 2); PointNet (Qi et al., arXiv 1612.00593).
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, get_args

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor

from pointset.configuration import check
from pointset.nn.masks import STATISTICS, Mask, StatisticName
from pointset.nn.modules import Pooling
from pointset.nn.registry import register

SomeStatistics = Annotated[
    tuple[StatisticName, ...], Meta(min_length=1, description=f"a list of {', '.join(get_args(StatisticName))}")
]


class StatisticPool(Pooling):
    """Concatenated statistics of each feature: Z [B, n, d], mask [B, n] -> [B, 1, s d]; zeros for an empty set.

    A subclass lists its `statistics` ("max", "min", "mean", "sum", "deviation"). By default they are concatenated;
    override `of_statistics` to combine them in another way.

    Raises:
        PointsetError: the subclass lists no statistics, or an unknown one.

    Example:
        >>> class Range(pointset.nn.StatisticPool):
        ...     statistics = ("max", "min")
        ...
        ...     def of_statistics(self, pooled):
        ...         return pooled["max"] - pooled["min"]
        >>> Range()(torch.tensor([[[1.0], [4.0], [9.0]]]))[0, 0].tolist()
        [8.0]
    """

    statistics: ClassVar[tuple[StatisticName, ...]] = ()
    options_used = ()
    export = True

    def __init__(self) -> None:
        super().__init__()
        check(f"statistics of {type(self).__name__}", self.statistics, SomeStatistics)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B _ _"]:
        return self.of_statistics({name: STATISTICS[name](Z, mask) for name in self.statistics})

    def of_statistics(self, pooled: Mapping[StatisticName, Float[Tensor, "B 1 d"]]) -> Float[Tensor, "B _ _"]:
        """The pooled rows, from the statistics of each set by name."""
        return torch.cat([pooled[name] for name in self.statistics], dim=2)


@register("pooling", "max")
class MaxPool(StatisticPool):
    """Largest value of each feature.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MaxPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [4.0]
    """

    statistics = ("max",)


@register("pooling", "mean")
class MeanPool(StatisticPool):
    """Mean of each feature.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MeanPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [2.5]
    """

    statistics = ("mean",)
    statistic = "mean"


@register("pooling", "sum")
class SumPool(StatisticPool):
    """Sum of each feature; unlike the mean, it depends on the number of elements.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.SumPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [5.0]
    """

    statistics = ("sum",)
