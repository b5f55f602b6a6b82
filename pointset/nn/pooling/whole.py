"""Poolings of whole sets: their base class, and ApproxRepSet."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.masks import Mask, masked_sum, non_empty, zero_padded_rows
from pointset.nn.parts import Pooling
from pointset.nn.registry import register


class WholePool(Pooling):
    """Base class: Z [B, n, d], mask [B, n] -> [B, 1, e]; zeros for an empty set.

    A subclass implements `pooled` for sets with and without padding. It computes in float32 or float64: a sum of ones
    in bfloat16 would stop growing at 256.
    """

    reads: ClassVar[tuple[str, ...] | None] = ()
    export = True

    @classmethod
    def make(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it from the argument in its name and the width of the rows."""
        return cls(width) if argument is None else cls(argument, width)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one row per set; the mask is True at real rows."""
        mixed = torch.is_autocast_enabled(Z.device.type)
        with torch.autocast(Z.device.type, enabled=False):
            rows = Z.to(torch.promote_types(Z.dtype, torch.float32))
            pooled = self.pooled(zero_padded_rows(rows, mask), mask)
        if mask is not None:
            pooled = pooled.masked_fill(~non_empty(mask), 0.0)
        return pooled if mixed else pooled.to(Z.dtype)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """The pooled row of each set; for an empty set any result with finite gradients, as it is replaced by 0."""
        raise NotImplementedError


@register("pooling", "repset<k>", listed="repset5")
class ApproxRepSetPool(WholePool):
    """y_f = sum_i max_j ReLU(x_i . u_fj), where hidden set f has k trained elements u_f1, ..., u_fk.

    Each row x_i is matched with its best element. This is the released relaxation of RepSet, in which no two rows may
    match the same element. There are as many hidden sets as features, and k = 5, as Kothapalli et al. (arXiv
    2306.05553) use for clouds; for words, the authors use 10 sets of 20 elements. The result is a sum, so it grows
    with n. Elements are initialised uniformly in [-1, 1], as released. Source: Skianis et al., arXiv 1904.01962.
    """

    def __init__(self, k: int, dim: int) -> None:
        super().__init__()
        self.elements = nn.Parameter(torch.empty(k, dim, dim).uniform_(-1, 1))
        """The elements u, [k, hidden sets, d]."""

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The sum of the best matches of all rows in each hidden set."""
        # One product per element, so that the maximum is over the first axis.
        products = Z.flatten(0, 1).expand(len(self.elements), -1, -1) @ self.elements.to(Z.dtype).transpose(1, 2)
        return masked_sum(products.amax(dim=0).relu().unflatten(0, Z.shape[:2]), mask)
