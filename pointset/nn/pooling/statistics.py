"""Poolings of each feature by itself: maximum, mean, sum, those of a user, the mean of the largest, generalised mean.

Sources: Deep Sets (Zaheer et al., arXiv 1703.06114, theorem 2); PointNet (Qi et al., arXiv 1612.00593).
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from msgspec import Meta
from torch import Tensor, nn

from pointset.configuration import check
from pointset.nn.masks import STATISTICS, Mask, StatisticName
from pointset.nn.modules import OneRowPool, Pooling
from pointset.nn.registry import register

SomeStatistics = Annotated[
    tuple[StatisticName, ...], Meta(min_length=1, description=f"a list of {', '.join(get_args(StatisticName))}")
]

LEAST_NUMBER = 1e-6
"""A generalised mean replaces smaller numbers by this."""
EXPONENTS = (1e-2, 1e3)
"""Bounds of its exponent p: close to the geometric mean, and close to the maximum."""
NOTHING = -1e9
"""Replaces the logarithm of x^p at padded rows: its exponential is 0, and unlike -inf it has a finite gradient."""


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
        """Return the pooled rows of each set; the mask is True at real rows."""
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


@register("pooling", "top<k>", listed="top8")
class TopKPool(OneRowPool):
    """Mean of the k largest values of each feature, or of all values in smaller sets; k = 1 is the maximum.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Args:
        k: number of values.

    Source:
        Durand, Thome and Cord, WELDON (CVPR 2016).

    Example:
        >>> pointset.nn.TopKPool(2)(torch.tensor([[[1.0], [4.0], [8.0]]])).tolist()
        [[[6.0]]]
    """

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it from k."""
        return cls(argument)

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The mean of the largest values."""
        X = Z.transpose(1, 2)
        sizes = torch.ones_like(X[:1, :1]).sum(dim=2, keepdim=True)
        if mask is not None:
            X, sizes = X.masked_fill(~mask.unsqueeze(1), -torch.inf), mask.sum(dim=1).clamp(min=1)[:, None, None]
        # Pad to at least k rows.
        largest = F.pad(X, (0, self.k - 1), value=-torch.inf).topk(self.k, dim=2, sorted=True).values
        is_real = torch.arange(self.k, device=X.device) < sizes
        sums = largest.masked_fill(~is_real, 0.0).sum(dim=2, keepdim=True)
        return (sums / is_real.sum(dim=2, keepdim=True)).transpose(1, 2)


@register("pooling", "gem")
class GeMPool(OneRowPool):
    """y_f = ((1/n) sum_i x_fi^p)^(1/p), with p trained, initially 3: the mean for p = 1, the maximum as p grows.

    As released, all features share one p, and numbers below 10^-6 are replaced by 10^-6, because the mean is defined
    for positive numbers, such as outputs of a ReLU. It is computed with logarithms, so that no power overflows. The
    trained parameter is log p, so that p stays positive.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Args:
        exponent: initial exponent p.

    Source:
        Radenovic, Tolias and Chum, GeM (arXiv 1711.02512), eq. 3.

    Example:
        >>> pooled = pointset.nn.GeMPool(exponent=2.0)(torch.tensor([[[1.0], [7.0]]]))
        >>> round(pooled.item(), 3)
        5.0
    """

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it, without an argument."""
        return cls()

    def __init__(self, exponent: float = 3.0) -> None:
        super().__init__()
        self.log_exponent = nn.Parameter(torch.tensor(math.log(exponent)))

    @property
    def exponent(self) -> Float[Tensor, ""]:
        """The exponent p."""
        low, high = map(math.log, EXPONENTS)
        return self.log_exponent.clamp(low, high).exp()

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The generalised mean of each feature."""
        logarithms = Z.clamp(min=LEAST_NUMBER).log() * self.exponent.to(Z.dtype)  # of x^p
        if mask is None:
            count = torch.ones_like(logarithms[:1, :, :1]).sum(dim=1, keepdim=True)
        else:
            count = mask.sum(dim=1).clamp(min=1).to(Z.dtype)[:, None, None]
            logarithms = logarithms.masked_fill(~mask.unsqueeze(-1), NOTHING)
        return ((logarithms.logsumexp(dim=1, keepdim=True) - count.log()) / self.exponent.to(Z.dtype)).exp()
