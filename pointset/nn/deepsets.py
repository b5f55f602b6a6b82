"""The permutation-equivariant layers of DeepSets (Zaheer et al., arXiv 1703.06114, section 3.1 and appendix H)."""

from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.masks import masked_max, masked_mean

Statistic = Literal["max", "mean"]
STATISTICS = {"max": masked_max, "mean": masked_mean}


class EquivariantLayer(nn.Module):
    """y_i = tanh(Gamma(x_i - max_j x_j)), or with the mean in place of the max; Gamma is linear with a bias.

    This is the layer of the authors' point-cloud runs: the rows meet through one vector, the set's statistic.
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max") -> None:
        super().__init__()
        self.statistic = STATISTICS[statistic]
        self.gamma = nn.Linear(dim_in, dim)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows [B, n, d], in the order of X; `mask` is True at real rows."""
        return self.gamma(X - self.statistic(X, mask)).tanh()
