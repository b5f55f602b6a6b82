"""The encoders of DeepSets (Zaheer et al., arXiv 1703.06114): row-wise layers, equivariant layers, and none."""

import itertools
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import NormName
from pointset.nn.layers import Masked
from pointset.nn.masks import STATISTICS, Mask
from pointset.nn.norms import make_norm
from pointset.nn.parts import Encoder, Statistic
from pointset.nn.registry import register


@register("encoder", "rff")
class RowwiseLayers(Encoder):
    """Linear layers with ReLU between them and the chosen norm before each ReLU; four by default, as published.

    It is PointNet's skeleton (Qi et al., arXiv 1612.00593), and DeepSets without interaction.
    """

    reads = ("layers", "norm")
    export = True

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        """Build it from the numbers per point, `dim`, `layers` and the norm."""
        modules: list[nn.Module] = [Masked(nn.Linear(inputs, options.dim))]
        for _ in range((options.layers or 4) - 1):
            norm = make_norm(options.norm or "none", options.dim)
            modules += [norm, Masked(nn.ReLU(), nn.Linear(options.dim, options.dim))]
        return cls(modules)


@register("encoder", "none")
class NoLayers(Encoder):
    """The points unchanged if the pooling accepts rows of any width, else one linear layer to width `dim`."""

    reads = ()
    export = True

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        """Build it from the numbers per point and `dim`."""
        return cls([Masked() if pooling.any_width else Masked(nn.Linear(inputs, options.dim))])


class EquivariantLayer(nn.Module):
    """y_i = tanh(N(Gamma(x_i - max_j x_j))), or with the mean in place of the max; Gamma is linear with a bias.

    The rows interact through one vector, a statistic of the set. Without the norm N, this is the layer of the authors'
    point-cloud experiments.

    X [B, n, dim_in] with a mask [B, n] gives [B, n, dim].

    Args:
        dim_in: width of the rows of X.
        dim: width of the result.
        statistic: what is subtracted, "max" or "mean".
        norm: name of the norm N.

    Source:
        Zaheer et al., Deep Sets (arXiv 1703.06114), section 3.1 and appendix H.
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max", norm: NormName = "none") -> None:
        super().__init__()
        self.statistic = statistic
        self.gamma = nn.Linear(dim_in, dim)
        self.norm = make_norm(norm, dim)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X; `mask` is True at real rows."""
        return self.norm(self.gamma(X - STATISTICS[self.statistic](X, mask)), mask).tanh()


@register("encoder", "rffp")
class EquivariantLayers(Encoder):
    """Equivariant layers with the pooling's statistic, as in the papers' tables; three by default, as published."""

    reads = ("layers", "norm")
    export = True
    activation = nn.Tanh
    subtracts_statistic = True

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        """Build it from the numbers per point, `dim`, `layers`, the norm and the statistic of the pooling."""
        pairs = itertools.pairwise([inputs, *[options.dim] * (options.layers or 3)])
        return cls(EquivariantLayer(*pair, pooling.statistic, options.norm or "none") for pair in pairs)
