"""The equivariant layers of the Set Transformer's tables, rFFp: they see where a set is, not its shape alone."""

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.masks import STATISTICS
from pointset.nn.registry import Statistic


class PositionedEquivariantLayer(nn.Module):
    """y_i = ReLU(Gamma(x_i) - Lambda(pool_j x_j)); Gamma is linear with a bias, Lambda without.

    arXiv 1810.00825, eq. 2: sigma(lambda x + gamma pool({x_1, ..., x_n})), with matrices for numbers as in Deep
    Sets (arXiv 1703.06114, section 3.1). `pointset.nn.EquivariantLayer`, the one of the point-cloud runs, has Gamma =
    Lambda: a first layer of that kind gives the same rows wherever a set lies, and no later layer could say where its
    clusters are.
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
