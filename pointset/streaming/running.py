"""Statistics of a set, accumulated block by block: maxima, sums, and attention of a few queries.

A block of rows is [1, n, d], with a batch of one; no `add` keeps its rows. Totals are float64, so that sums of ten
million rows are as accurate as sums of ten. Products over the rows of one block have the type of the rows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.blocks import MAB
from pointset.nn.fast.absorbed import absorbed_queries, absorbed_values
from pointset.nn.pooling.dumlp import DualMLP
from pointset.nn.scores import DotScore

Rows = Float[Tensor, "1 n d"]
Rowwise = Callable[[Tensor], Tensor]


def exact_type(device: torch.device) -> torch.dtype:
    """The type of totals: float64, or float32 on Apple GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class Running(Protocol):
    """A statistic that is accumulated in one pass over the set."""

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""


class RunningMax:
    """Largest value of each feature."""

    def __init__(self) -> None:
        self._largest: Tensor | None = None

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        largest = rows.amax(dim=1, keepdim=True)
        self._largest = largest if self._largest is None else torch.maximum(self._largest, largest)

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The maxima of all rows so far."""
        assert self._largest is not None, "a pass has at least one row"
        return self._largest


class RunningMin(RunningMax):
    """Smallest value of each feature."""

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        super().add(-rows)

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The minima of all rows so far."""
        return -super().result()


class RunningSum:
    """Sum of each feature, and the number of rows."""

    def __init__(self) -> None:
        self._total: Tensor | None = None
        self._dtype = torch.float32
        self.count = 0

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        total = rows.sum(dim=1, keepdim=True, dtype=exact_type(rows.device))
        self._total = total if self._total is None else self._total.add_(total)
        self._dtype = rows.dtype
        self.count += rows.shape[1]

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The sums of all rows so far."""
        assert self._total is not None, "a pass has at least one row"
        return self._total.to(self._dtype)


class RunningMean(RunningSum):
    """Mean of each feature."""

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The means of all rows so far."""
        assert self._total is not None, "a pass has at least one row"
        return (self._total / self.count).to(self._dtype)


class RunningDeviation(RunningMean):
    """Standard deviation of each feature, as in `pointset.nn.masks.masked_deviation`.

    The mean of the first block is subtracted before squaring, so that totals stay small and accurate.
    """

    def __init__(self) -> None:
        super().__init__()
        self._origin: Tensor | None = None
        self._squares = RunningMean()

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        if self._origin is None:
            self._origin = rows.mean(dim=1, keepdim=True)
        rows = (rows - self._origin).to(exact_type(rows.device))
        super().add(rows)
        self._squares.add(rows.square())

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The deviations of all rows so far."""
        assert self._origin is not None, "a pass has at least one row"
        variance = self._squares.result() - super().result().square()
        return (variance.clamp(min=0.0) + 1e-6).sqrt().to(self._origin.dtype)


class RunningSoftmax(ABC):
    """Softmax attention of a few queries to the rows of a set, accumulated block by block.

    For each head and query it keeps the largest logit so far M, the sum of exp(l_i - M), and the sum of
    exp(l_i - M) v_i; the two sums are rescaled when M grows (Milakov and Gimelshein, "Online normalizer calculation for
    softmax", arXiv 1805.02867, section 3).

    Args:
        heads, queries: number of heads, and of queries of each head.
        layer: the name of the module inside the model.
        kind: "reads" or "pools", as in `pointset.attention_maps`.
    """

    def __init__(self, heads: int, queries: int, layer: str, kind: Literal["reads", "pools"]) -> None:
        self.heads, self.queries, self.layer, self.kind = heads, queries, layer, kind
        self.rows_of: Rowwise = nn.Identity()
        """Computes, from each block, the rows to attend to."""
        self._greatest: Tensor | float = -math.inf
        self._total: Tensor | float = 0.0
        self._weighted: Tensor | float = 0.0

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        values, logits = self.look(self.rows_of(rows))
        greatest = logits.amax(dim=1, keepdim=True).to(exact_type(rows.device))
        if isinstance(self._greatest, Tensor):
            greatest = torch.maximum(self._greatest, greatest)
        kept = torch.exp(self._greatest - greatest)
        weights = logits.sub_(greatest.to(logits.dtype)).exp_()
        self._total = self._total * kept + weights.sum(dim=1, keepdim=True, dtype=kept.dtype)
        self._weighted = self._weighted * kept + weights @ values
        self._greatest = greatest

    def read(self) -> Float[Tensor, "hq e"]:
        """Weighted means of the values of all rows so far, [heads * queries, e]."""
        assert isinstance(self._weighted, Tensor), "a pass has at least one row"
        return self._weighted / self._total

    def log_weights(self, rows: Rows) -> Float[Tensor, "hq n"]:
        """Logarithms of the attention weights of a block, after all rows have been added; [heads * queries, n]."""
        assert isinstance(self._greatest, Tensor), "a pass has at least one row"
        assert isinstance(self._total, Tensor)
        _, logits = self.look(self.rows_of(rows))
        return logits.sub_(self._greatest.to(logits.dtype)).sub_(self._total.log().to(logits.dtype))

    @abstractmethod
    def look(self, rows: Rows) -> tuple[Float[Tensor, "n e"], Float[Tensor, "hq n"]]:
        """The values of a block, and its logits, which the caller may overwrite."""


class RunningReading(RunningSoftmax):
    """What the maps of a `DualMLP` read, accumulated block by block."""

    def __init__(self, module: DualMLP, layer: str, kind: Literal["reads", "pools"]) -> None:
        super().__init__(1, module.k, layer, kind)
        self.module = module

    def result(self) -> Float[Tensor, "1 k e"]:
        """A^T V of all rows so far."""
        return self.read().to(self.module.logits.weight.dtype)[None]

    def look(self, rows: Rows) -> tuple[Float[Tensor, "n e"], Float[Tensor, "k n"]]:
        """The values and logits of a block."""
        return self.module.values(rows)[0], self.module.logits(rows)[0].T.contiguous()


class RunningAttention(RunningSoftmax):
    """MAB(S, Y) for a few queries S (inducing points or seeds), accumulated block by block over the rows Y.

    The rows are not projected: the projections to keys and values are applied on the side of the queries, as in
    `pointset.nn.fast.absorbed`.

    Args:
        mab: the block.
        S: its queries [1, q, d_query].
        prepare: computes Y from the rows; the block's own norm is applied after it.
        layer: the name of the block inside the model.
        kind: "reads" or "pools", as in `pointset.attention_maps`.
    """

    def __init__(self, mab: MAB, S: Tensor, prepare: Rowwise, layer: str, kind: Literal["reads", "pools"]) -> None:
        attention = mab.multihead
        super().__init__(attention.heads, S.shape[1], layer, kind)
        Q = attention.query(mab.norm_query(S))
        assert isinstance(attention.score, DotScore)
        self.mab, self.prepare = mab, prepare
        self._residual = S if mab.form == "paper" else Q
        self._folded = absorbed_queries(Q, attention.key, attention.score)[0].flatten(0, 1)  # [h q, d_key]

    def result(self) -> Float[Tensor, "1 q d"]:
        """The output O of the MAB, for all rows so far."""
        attention = self.mab.multihead
        read = self.read().to(self._folded.dtype).unflatten(0, (self.heads, -1))
        return self.mab.complete(self._residual, absorbed_values(read[None], attention.value))

    def look(self, rows: Rows) -> tuple[Float[Tensor, "n d_key"], Float[Tensor, "hq n"]]:
        """The normalised rows Y of a block, and its logits."""
        Y = self.mab.norm_key(self.prepare(rows))[0]
        return Y, self._folded @ Y.T
