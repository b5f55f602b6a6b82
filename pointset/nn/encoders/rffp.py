"""Permutation-equivariant layers (DeepSets)."""

import itertools
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import NormName, check_counts
from pointset.nn.masks import STATISTICS, Mask
from pointset.nn.modules import Encoder, Statistic
from pointset.nn.norms import make_norm
from pointset.nn.registry import register


class EquivariantLayer(nn.Module):
    """y_i = tanh(N(Gamma(x_i - max_j x_j))), where Gamma is a linear layer with bias.

    The rows interact only through the subtracted statistic, the maximum or the mean. Without the norm N, this is the
    layer of the authors' point-cloud experiments.

    X [B, n, dim_in] with a mask [B, n] (True at real rows) gives [B, n, dim].

    Args:
        dim_in, dim: widths of X and of the result.
        statistic: the statistic to subtract, "max" or "mean".
        norm: name of the norm N.

    Source:
        Zaheer et al., Deep Sets (arXiv 1703.06114), section 3.1 and appendix H.

    Example:
        >>> pointset.nn.EquivariantLayer(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max", norm: NormName = "none") -> None:
        super().__init__()
        self.statistic = statistic
        self.gamma = nn.Linear(dim_in, dim)
        self.norm = make_norm(norm, dim)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        return self.norm(self.gamma(X - STATISTICS[self.statistic](X, mask)), mask).tanh()


@register("encoder", "rffp")
class EquivariantEncoder(Encoder):
    """Equivariant layers (three by default) that subtract the pooling's statistic, the maximum or the mean.

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, dim].

    Args:
        inputs, dim, layers: inputs per point, width of the layers, and number of layers.
        statistic, norm: see `EquivariantLayer`.

    Source:
        Zaheer et al., Deep Sets (arXiv 1703.06114), appendix H.

    Example:
        >>> pointset.nn.EquivariantEncoder(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ("layers", "norm")
    export = True
    activation = nn.Tanh
    subtracts_statistic = True

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(inputs, options.dim, options.layers or 3, pooling.statistic, options.attention.norm or "none")

    def __init__(
        self, inputs: int, dim: int, layers: int = 3, statistic: Statistic = "max", norm: NormName = "none"
    ) -> None:
        check_counts(inputs=inputs, dim=dim, layers=layers)
        pairs = itertools.pairwise([inputs, *[dim] * layers])
        super().__init__(EquivariantLayer(*pair, statistic, norm) for pair in pairs)
