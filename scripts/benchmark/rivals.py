"""Four other implementations of the architecture of our attention models.

- "released": as in the code of the authors of the Set Transformer (github juho-lee/set_transformer, modules.py). Heads
  are concatenated along the batch, products and softmax are explicit, and inducing points are repeated for every set.
- "sdpa": the same function with `scaled_dot_product_attention` on projected keys.
- "torch-geometric": its `SetAttentionBlock`, `InducedSetAttentionBlock` and `PoolingByMultiheadAttention`.
- "torch": blocks around `torch.nn.MultiheadAttention`, which has an output projection W^O.

The first two have the weights of one of our models in attention form "reference" and compute the same logits. The other
two are different functions with the same widths and numbers of layers, without layer norm, after one linear layer from
width 3 to d.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pointset.nn import ISAB, MAB, PMA, SAB, AttentionPool

Attend = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""A function from queries, keys and values [B, ., d] and a number of heads to queries + attention, [B, n, d]."""


def split_along_batch(Q: Tensor, K: Tensor, V: Tensor, heads: int) -> Tensor:
    """Return queries + attention, with heads concatenated along the batch and explicit weights."""
    width = V.shape[2] // heads
    Q_, K_, V_ = (torch.cat(part.split(width, 2), 0) for part in (Q, K, V))
    A = torch.softmax(Q_.bmm(K_.transpose(1, 2)) / math.sqrt(V.shape[2]), 2)
    return torch.cat((Q_ + A.bmm(V_)).split(Q.shape[0], 0), 2)


def fused(Q: Tensor, K: Tensor, V: Tensor, heads: int) -> Tensor:
    """Return queries + attention by `scaled_dot_product_attention`, with the heads as a dimension."""
    Q_, K_, V_ = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (Q, K, V))
    read = F.scaled_dot_product_attention(Q_, K_, V_, scale=1 / math.sqrt(V.shape[2]))
    return Q + read.transpose(1, 2).flatten(2)


class PlainMAB(nn.Module):
    """MAB in form "reference" with the weights of one of our MABs."""

    def __init__(self, mab: MAB, attend: Attend) -> None:
        super().__init__()
        self.attend = attend
        self.heads = mab.multihead.heads
        self.query, self.key, self.value = mab.multihead.query, mab.multihead.key, mab.multihead.value
        self.linear = mab.feed_forward[0]

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        """X [B, n, .] attends to Y [B, m, .]; returns [B, n, d]."""
        O = self.attend(self.query(X), self.key(Y), self.value(Y), self.heads)  # noqa: E741  the paper's letter
        return O + F.relu(self.linear(O))


class PlainISAB(nn.Module):
    """ISAB: inducing points, repeated for every set, attend to its rows, and the rows attend to the result."""

    def __init__(self, rows: nn.Parameter, reads: nn.Module, writes: nn.Module) -> None:
        super().__init__()
        self.rows, self.reads, self.writes = rows, reads, writes

    def forward(self, X: Tensor) -> Tensor:
        """Map [B, n, d_in] to [B, n, d]."""
        return self.writes(X, self.reads(self.rows.repeat(X.shape[0], 1, 1), X))


class PlainSAB(nn.Module):
    """SAB: every row attends to all rows."""

    def __init__(self, mab: nn.Module) -> None:
        super().__init__()
        self.mab = mab

    def forward(self, X: Tensor) -> Tensor:
        """Map [B, n, d_in] to [B, n, d]."""
        return self.mab(X, X)


class PlainPMA(nn.Module):
    """PMA: seed vectors, repeated for every set, attend to its rows."""

    def __init__(self, seeds: nn.Parameter, mab: nn.Module) -> None:
        super().__init__()
        self.seeds, self.mab = seeds, mab

    def forward(self, Z: Tensor) -> Tensor:
        """Map [B, n, d] to [B, k, d]."""
        return self.mab(self.seeds.repeat(Z.shape[0], 1, 1), Z)


def rewritten(model: Any, attend: Attend) -> nn.Sequential:
    """Return one of our models (form "reference", no norm) in another implementation, with the same weights."""
    modules = [*model.encoder, model.pool, *model.head]
    return nn.Sequential(*(_rewrite(module, attend) for module in modules))


def _rewrite(module: nn.Module, attend: Attend) -> nn.Module:
    match module:
        case MAB():
            return PlainMAB(module, attend)
        case ISAB():
            return PlainISAB(module.inducing_points, *(_rewrite(mab, attend) for mab in (module.reads, module.writes)))
        case SAB():
            return PlainSAB(_rewrite(module.mab, attend))
        case PMA(seeds=nn.Parameter() as seeds):
            return PlainPMA(seeds, _rewrite(module.mab, attend))
        case AttentionPool(sab=None):
            return nn.Sequential(_rewrite(module.dropout, attend), _rewrite(module.pma, attend))
        case nn.Module(rowwise=nn.Module() as rowwise):
            return rowwise
        case nn.Dropout():
            return nn.Dropout(module.p)
        case nn.Linear() | nn.ReLU() | nn.Flatten():
            return module
    raise TypeError(f"the benchmark has no other implementation of {type(module).__name__}")


class TorchMAB(nn.Module):
    """MAB around `torch.nn.MultiheadAttention`: H = X + Multihead(X, Y, Y), O = H + ReLU(H W + b)."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.linear = nn.Linear(dim, dim)

    def forward(self, X: Tensor, Y: Tensor) -> Tensor:
        """X [B, n, d] attends to Y [B, m, d]; returns [B, n, d]."""
        H = X + self.attention(X, Y, Y, need_weights=False)[0]
        return H + F.relu(self.linear(H))


def _rows(count: int, dim: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(1, count, dim))


def torch_model(name: str, dim: int, heads: int, classes: int) -> nn.Sequential:
    """Return `isab<m>-pma` or `sab-pma` with `torch.nn.MultiheadAttention`."""

    def block() -> nn.Module:
        if name.startswith("sab"):
            return PlainSAB(TorchMAB(dim, heads))
        return PlainISAB(_rows(inducing(name), dim), TorchMAB(dim, heads), TorchMAB(dim, heads))

    pool = PlainPMA(_rows(1, dim), TorchMAB(dim, heads))
    return _assembled(dim, classes, [block(), block()], pool)


def geometric_model(name: str, dim: int, heads: int, classes: int) -> nn.Sequential:
    """Return `isab<m>-pma` or `sab-pma` with the blocks of torch-geometric."""
    from torch_geometric.nn.aggr.utils import InducedSetAttentionBlock, PoolingByMultiheadAttention, SetAttentionBlock

    def block() -> nn.Module:
        if name.startswith("sab"):
            return SetAttentionBlock(dim, heads, layer_norm=False)
        return InducedSetAttentionBlock(dim, inducing(name), heads, layer_norm=False)

    return _assembled(dim, classes, [block(), block()], PoolingByMultiheadAttention(dim, 1, heads, layer_norm=False))


def geometric_aggregation(dim: int, heads: int, classes: int) -> nn.Module:
    """Return `sab-pma` as `SetTransformerAggregation` of torch-geometric, on the concatenated rows of equal sets."""
    from torch_geometric.nn.aggr import SetTransformerAggregation

    pool = SetTransformerAggregation(dim, 1, 2, 0, heads, dropout=0.0)
    return nn.Sequential(nn.Linear(3, dim), Flat(pool), nn.Dropout(0.5), nn.Linear(dim, classes))


class Flat(nn.Module):
    """Calls an aggregation of torch-geometric with the rows of all sets and the index of the set of each row."""

    def __init__(self, aggregation: nn.Module) -> None:
        super().__init__()
        self.aggregation = aggregation

    def forward(self, X: Tensor) -> Tensor:
        """Map [B, n, d] to [B, d]."""
        sets, rows, _ = X.shape
        index = torch.arange(sets, device=X.device).repeat_interleave(rows)
        return self.aggregation(X.flatten(0, 1), index, dim_size=sets, max_num_elements=rows)


def _assembled(dim: int, classes: int, blocks: list[nn.Module], pool: nn.Module) -> nn.Sequential:
    head = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(dim, classes)]
    return nn.Sequential(nn.Linear(3, dim), *blocks, nn.Dropout(0.5), pool, *head)


def inducing(name: str) -> int:
    """Return the number m of inducing points in a name `isab<m>-...`."""
    return int(name.removeprefix("isab").partition("-")[0])
