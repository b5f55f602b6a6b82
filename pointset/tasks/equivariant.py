"""The equivariant layers rFFp of the Set Transformer's tables; unlike the zoo's, they are not translation invariant."""

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.masks import STATISTICS
from pointset.nn.registry import Statistic


class PositionedEquivariantLayer(nn.Module):
    """y_i = ReLU(Gamma(x_i) - Lambda(pool_j x_j)); Gamma is linear with a bias, Lambda without.

    arXiv 1810.00825, eq. 2: sigma(lambda x + gamma pool({x_1, ..., x_n})), with matrices in place of numbers as in Deep
    Sets (arXiv 1703.06114, section 3.1). In `pointset.nn.EquivariantLayer`, the layer of the point-cloud experiments,
    Gamma = Lambda. Its output does not change when the whole set is translated, so later layers could not predict the
    position of clusters.
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max") -> None:
        super().__init__()
        self.statistic = STATISTICS[statistic]
        self.gamma = nn.Linear(dim_in, dim)
        self.lambda_ = nn.Linear(dim_in, dim, bias=False)

    def forward(self, X: Float[Tensor, "*rows d_in"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the rows, in the order of X; `mask` is True at real rows."""
        return (self.gamma(X) - self.lambda_(self._pooled(X, mask))).relu()

    def _pooled(self, X: Tensor, mask: Layout | None) -> Tensor:
        if isinstance(mask, Packed):
            return mask.each_row(lambda x: self._pooled(x, None).expand_as(x), X)
        return self.statistic(X, mask)
