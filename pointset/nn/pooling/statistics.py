"""Poolings by a statistic of each feature: maximum, mean and sum.

Sources: Deep Sets (Zaheer et al., arXiv 1703.06114, theorem 2); PointNet (Qi et al., arXiv 1612.00593).
"""

from jaxtyping import Float
from torch import Tensor

from pointset.nn.masks import Mask, masked_max, masked_mean, masked_sum
from pointset.nn.modules import Pooling
from pointset.nn.registry import register


@register("pooling", "max")
class MaxPool(Pooling):
    """Maximum of each feature.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MaxPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [4.0]
    """

    options_used = ()
    export = True

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
        return masked_max(Z, mask)


@register("pooling", "mean")
class MeanPool(Pooling):
    """Mean of each feature.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.MeanPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [2.5]
    """

    options_used = ()
    export = True
    statistic = "mean"

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
        return masked_mean(Z, mask)


@register("pooling", "sum")
class SumPool(Pooling):
    """Sum of each feature, which, unlike the mean, depends on the number of rows.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Example:
        >>> pooling = pointset.nn.SumPool()
        >>> pooling(torch.tensor([[[1.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))[0, 0].tolist()
        [5.0]
    """

    options_used = ()
    export = True

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
        return masked_sum(Z, mask)
