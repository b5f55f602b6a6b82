"""Several poolings, concatenated: any poolings can be joined by `+`, as in "max+mean" or "max+pma".

DGCNN uses maximum and mean (Wang et al., arXiv 1801.07829, section 5.1). Kothapalli et al. (arXiv
2306.05553) measure the gain of pairs of poolings after one encoder.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout
from pointset.nn.registry import JOIN, register


@register("pooling", JOIN, listed="max+mean", export=True)
class JoinedPool(nn.Module):
    """The flattened outputs of several poolings of the same rows, concatenated: [B, 1, sum of widths].

    It accepts packed sets, and can be streamed, if all of its poolings can; its attention maps are those of all;
    whether it can be exported is checked for each pooling. Equivariant layers before it subtract the statistic of the
    first pooling. The head after it has one layer if that is so for all of them.

    Args:
        pools: modules called as `pool(Z, mask)`, from [B, n, d] to [B, k, e] or [B, e].
    """

    def __init__(self, pools: Iterable[nn.Module]) -> None:
        super().__init__()
        self.pools = nn.ModuleList(pools)

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 _"]:
        """Return one row per set; the mask is True at real rows."""
        return self.side_by_side([pool(Z, mask) for pool in self.pools])

    @staticmethod
    def side_by_side(pooled: Iterable[Tensor]) -> Float[Tensor, "B 1 _"]:
        """One row per set, from the outputs [B, k, e] or [B, e] of the poolings."""
        return torch.cat([rows.flatten(1) for rows in pooled], dim=1).unsqueeze(1)
