"""The permutation-equivariant layers of DeepSets (Zaheer et al., arXiv 1703.06114, section 3.1 and appendix H)."""

import itertools

from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import NormName
from pointset.nn.checks import check_rows
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.masks import STATISTICS
from pointset.nn.norms import make_norm
from pointset.nn.registry import Statistic, register


class EquivariantLayer(nn.Module):
    """y_i = tanh(N(Gamma(x_i - max_j x_j))), or with the mean in place of the max; Gamma is linear with a bias.

    The rows interact through one vector, a statistic of the set. Without the norm N, this is the layer of the authors'
    point-cloud experiments.

    X [B, n, dim_in] with a mask [B, n], or packed rows, gives [B, n, dim].

    Args:
        dim_in: width of the rows of X.
        dim: width of the result.
        statistic: what is subtracted, "max" or "mean".
        norm: name of the norm N.

    Source:
        Zaheer et al., Deep Sets (arXiv 1703.06114), section 3.1 and appendix H.

    Example:
        >>> layer = pointset.nn.EquivariantLayer(3, 16)
        >>> layer(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max", norm: NormName = "none") -> None:
        super().__init__()
        self.statistic = statistic
        self.gamma = nn.Linear(dim_in, dim)
        self.norm = make_norm(norm, dim)

    def forward(self, X: Float[Tensor, "*rows d_in"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the rows, in the order of X; `mask` is True at real rows."""
        check_rows(X, mask, self.gamma.weight)
        return self.norm(self.gamma(self._centred(X, mask)), mask).tanh()

    def _centred(self, X: Tensor, mask: Layout | None) -> Tensor:
        if isinstance(mask, Packed):
            return mask.each_row(lambda x: self._centred(x, None), X)
        return X - STATISTICS[self.statistic](X, mask)


@register("encoder", "rffp", activation=nn.Tanh, packed=True, export=True)
def equivariant_layers(
    inputs: int, dim: int, layers: int | None, norm: NormName | None, statistic: Statistic
) -> list[nn.Module]:
    """Equivariant layers with the pooling's statistic, as in the papers' tables; three by default, as published."""
    widths = [inputs, *[dim] * (layers or 3)]
    return [EquivariantLayer(*pair, statistic, norm or "none") for pair in itertools.pairwise(widths)]
