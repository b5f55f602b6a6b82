"""Poolings joined by `+` in a name."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.masks import Mask
from pointset.nn.modules import Pooling
from pointset.nn.registry import JOIN, register


@register("pooling", JOIN, listed="max+mean")
class JoinedPool(Pooling):
    """Concatenation of the flattened results of several poolings of the same rows.

    Equivariant layers before a joined pooling subtract the statistic of its first pooling. The head after it has one
    layer if each of its poolings has a head with one layer.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, sum of widths].

    Args:
        pools: modules that are called as `pool(Z, mask)` and map [B, n, d] to [B, k, e] or [B, e].

    Source:
        DGCNN joins maximum and mean (Wang et al., arXiv 1801.07829, section 5.1). Kothapalli et al. (arXiv 2306.05553)
        measure the gain of pairs of poolings after one encoder.

    Example:
        >>> pooling = pointset.nn.JoinedPool([pointset.nn.MaxPool(), pointset.nn.MeanPool()])
        >>> pooling(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 32])
    """

    export = True

    def __init__(self, pools: Iterable[nn.Module]) -> None:
        super().__init__()
        self.pools = nn.ModuleList(pools)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 _"]:
        return torch.cat([pool(Z, mask).flatten(1) for pool in self.pools], dim=1).unsqueeze(1)
