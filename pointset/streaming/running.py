"""Statistics of a set, accumulated block by block: maxima, sums, and softmax attention of a few queries.

A block of rows is [1, n, d], with a batch of one; no `add` keeps its rows. Totals are float64, so that sums of ten
million rows are as accurate as sums of ten. Products over the rows of one block have the type of the rows.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.blocks import MAB
from pointset.nn.fast.absorbed import absorbed_queries, absorbed_values
from pointset.nn.masks import StatisticName
from pointset.nn.pooling.dumlp import DualMLP
from pointset.nn.scores import DotScore

Rows = Float[Tensor, "1 n d"]
Rowwise = Callable[[Tensor], Tensor]


def exact_type(device: torch.device) -> torch.dtype:
    """The type of totals: float64, or float32 on Apple GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class RunningStatistic:
    """A statistic of each feature, [1, 1, d], as in `pointset.nn.masks.STATISTICS`.

    For the deviation, the mean of the first block is subtracted before squaring, so that totals stay accurate.
    """

    def __init__(self, name: StatisticName) -> None:
        self.name = name
        self._count = 0
        self._origin: Tensor | float = 0.0
        self._total: Tensor | None = None
        self._dtype = torch.float32

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        self._count += rows.shape[1]
        self._dtype = rows.dtype
        if self.name in ("max", "min"):
            block = rows.amax(dim=1, keepdim=True) if self.name == "max" else -rows.amin(dim=1, keepdim=True)
            self._total = block if self._total is None else torch.maximum(self._total, block)
            return
        if self.name == "deviation":
            self._origin = rows.mean(dim=1, keepdim=True) if self._total is None else self._origin
            centred = (rows - self._origin).to(exact_type(rows.device))
            rows = torch.cat([centred, centred.square()])
        block = rows.sum(dim=1, keepdim=True, dtype=exact_type(rows.device))
        self._total = block if self._total is None else self._total + block

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The statistic of all rows so far."""
        assert self._total is not None, "a pass has at least one row"
        total = -self._total if self.name == "min" else self._total
        if self.name == "mean":
            total = total / self._count
        if self.name == "deviation":
            mean, squares = (total / self._count).split(1)
            total = ((squares - mean.square()).clamp(min=0.0) + 1e-6).sqrt()
        return total.to(self._dtype)


class RunningSoftmax:
    """Softmax attention of a few queries to the rows of a set, accumulated block by block.

    For each head and query it keeps the largest logit so far M, the sum of exp(l_i - M), and the sum of
    exp(l_i - M) v_i; the two sums are rescaled when M grows (Milakov and Gimelshein, "Online normalizer calculation for
    softmax", arXiv 1805.02867, section 3).

    Args:
        look: returns the values of a block [n, e], and its logits [heads * queries, n], which are overwritten.
        finish: computes the result from the weighted means of the values [heads * queries, e].
    """

    def __init__(self, look: Callable[[Rows], tuple[Tensor, Tensor]], finish: Callable[[Tensor], Tensor]) -> None:
        self._look, self._finish = look, finish
        self._greatest = torch.tensor(-math.inf)
        self._total = self._weighted = torch.tensor(0.0)

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        values, logits = self._look(rows)
        latest = logits.amax(dim=1, keepdim=True).to(exact_type(rows.device))
        greatest = torch.maximum(self._greatest.to(latest), latest)
        kept = torch.exp(self._greatest - greatest)
        weights = logits.sub_(greatest.to(logits.dtype)).exp_()
        self._total = self._total * kept + weights.sum(dim=1, keepdim=True, dtype=kept.dtype)
        self._weighted = self._weighted * kept + weights @ values
        self._greatest = greatest

    def result(self) -> Tensor:
        """What the queries read from all rows so far."""
        return self._finish(self._weighted / self._total)


Running = RunningStatistic | RunningSoftmax
"""A statistic that is accumulated in one pass over the set: `add` for each block of rows, then `result`."""


def running_maps(module: DualMLP) -> RunningSoftmax:
    """A^T V [1, k, e], what the k maps of a `DualMLP` read."""

    def look(rows: Rows) -> tuple[Tensor, Tensor]:
        return module.values(rows)[0], module.logits(rows)[0].T.contiguous()

    def finish(read: Tensor) -> Tensor:
        return read.to(module.logits.weight.dtype)[None]

    return RunningSoftmax(look, finish)


def running_attention(mab: MAB, S: Tensor, prepare: Rowwise) -> RunningSoftmax:
    """MAB(S, Y) [1, q, d] for a few queries S [1, q, d_query] (inducing points or seeds) and Y = prepare(rows).

    The rows are not projected: the projections to keys and values are applied on the side of the queries, as in
    `pointset.nn.fast.absorbed`.
    """
    attention = mab.multihead
    assert isinstance(attention.score, DotScore)
    Q = attention.query(mab.norm_query(S))
    queries = absorbed_queries(Q, attention.key, attention.score)[0].flatten(0, 1)  # [h q, d_key]

    def look(rows: Rows) -> tuple[Tensor, Tensor]:
        Y = mab.norm_key(prepare(rows))[0]
        return Y, queries @ Y.T

    def finish(read: Tensor) -> Tensor:
        read = read.to(queries.dtype).unflatten(0, (attention.heads, -1))
        return mab.complete(S, Q, absorbed_values(read[None], attention.value))

    return RunningSoftmax(look, finish)
