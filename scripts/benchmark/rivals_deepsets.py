"""What a user could write in place of our row-wise models: the same layers of plain torch modules.

- "plain": `rff-max`, `rffp-max` and `none-dumlp<k>` (no norm but dual-MLP's own) as one writes them, with the weights
  of one of ours: the same logits;
- "torch-geometric": of `rff-max`, its `DeepSetsAggregation` of an MLP, rows of equal sets laid end to end. It sums
  where ours takes the maximum.
"""

import torch
from rivals import Flat
from torch import Tensor, nn

from pointset.nn.dropout import Dropout
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.nn.layers import Masked
from pointset.nn.norms import NoNorm
from pointset.nn.pooling.dumlp import DualMLPPool, NormedLayers
from pointset.nn.pooling.statistics import MaxPool
from pointset.zoo.classifiers import SetClassifier

LAYERS = 4
"""Of rff."""


class PlainEquivariant(nn.Module):
    """tanh(Gamma(x - max x))."""

    def __init__(self, gamma: nn.Linear) -> None:
        super().__init__()
        self.gamma = gamma

    def forward(self, X: Tensor) -> Tensor:
        """[B, n, d_in] to [B, n, d]."""
        return torch.tanh(self.gamma(X - X.max(dim=1, keepdim=True).values))


class PlainMax(nn.Module):
    """The largest of each feature."""

    def forward(self, X: Tensor) -> Tensor:
        """[B, n, d] to [B, 1, d]."""
        return X.max(dim=1, keepdim=True).values


class PlainDualMLP(nn.Module):
    """softmax over the points of f(X), transposed, times g(X)."""

    def __init__(self, f: nn.Module, g: nn.Module) -> None:
        super().__init__()
        self.f, self.g = f, g

    def forward(self, X: Tensor) -> Tensor:
        """[B, n, d] to [B, k, e]."""
        logits, values = (network(X.flatten(0, 1)).unflatten(0, X.shape[:2]) for network in (self.f, self.g))
        return torch.softmax(logits, dim=1).transpose(1, 2) @ values


def plain(model: nn.Module) -> nn.Sequential:
    """One of our models of plain modules, with the same weights."""
    assert isinstance(model, SetClassifier)
    assert isinstance(model.head, nn.Sequential)
    return nn.Sequential(*map(_plain, [*model.encoder, model.pool, *model.head]))


def _plain(module: nn.Module) -> nn.Module:
    match module:
        case EquivariantLayer(norm=NoNorm(), statistic="max"):
            return PlainEquivariant(module.gamma)
        case MaxPool():
            return PlainMax()
        case DualMLPPool():
            return PlainDualMLP(_network(module.logits), _network(module.values))
        case Dropout():
            return nn.Dropout(module.rate)
        case Masked():
            return module.rowwise
        case NoNorm():
            return nn.Identity()
        case nn.Linear() | nn.ReLU() | nn.Tanh() | nn.Flatten():
            return module
    raise TypeError(f"the benchmark has no plain form of {type(module).__name__}")


def _network(layers: NormedLayers) -> nn.Sequential:
    modules: list[nn.Module] = []
    for linear, norm in zip(layers.linear, layers.norm, strict=True):
        assert isinstance(norm, nn.BatchNorm1d)
        torchs = nn.BatchNorm1d(norm.num_features).to(norm.weight)
        torchs.load_state_dict(norm.state_dict())
        modules += [linear, torchs, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def deepsets_aggregation(dim: int, classes: int) -> nn.Module:
    """`rff-max` as torch-geometric's `DeepSetsAggregation`, but with a sum."""
    from torch_geometric.nn import MLP
    from torch_geometric.nn.aggr import DeepSetsAggregation

    rows = MLP([3, *[dim] * LAYERS], norm=None, plain_last=True)
    pool = DeepSetsAggregation(rows, MLP([dim, dim, classes], dropout=0.5, norm=None))
    return Flat(pool, sized=False)
