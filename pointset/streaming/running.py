"""Statistics of a set, accumulated block by block: maxima, sums, and attention of a few queries.

Rows are [1, n, d], a block of the set behind a batch of one; no `add` keeps its rows. Totals are float64, so that ten
million rows add up as exactly as ten; the products over the rows of one block stay in the rows' own type.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.blocks import MAB
from pointset.nn.dual_mlp import DualMLP
from pointset.nn.fast.absorbed import absorbed_queries, absorbed_values

Rows = Float[Tensor, "1 n d"]
Rowwise = Callable[[Tensor], Tensor]


def exact_type(device: torch.device) -> torch.dtype:
    """What totals are kept in: float64, or float32 on Apple's GPUs, which have nothing finer."""
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
    """Standard deviation of each feature, as `pointset.nn.masks.masked_deviation` has it.

    Squares are taken of what is left when the first block's mean is subtracted: totals stay small, and exact.
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
    """Softmax attention of a few queries to rows that pass by.

    For every head and query three things are kept: the greatest logit so far M, the sum of exp(l_i - M), and the sum of
    exp(l_i - M) v_i, the last two rescaled when M grows (Milakov and Gimelshein, "Online normalizer calculation for
    softmax", arXiv 1805.02867, section 3).

    Args:
        heads, queries: how many.
        layer: the module's name inside the model.
        kind: "reads" or "pools", as in `pointset.attention_maps`.
    """

    def __init__(self, heads: int, queries: int, layer: str, kind: Literal["reads", "pools"]) -> None:
        self.heads, self.queries, self.layer, self.kind = heads, queries, layer, kind
        self.rows_of: Rowwise = nn.Identity()
        """The rows that are attended to, of the blocks that pass by."""
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
        """Weighted means of the values of all rows so far; queries run inside of heads."""
        assert isinstance(self._weighted, Tensor), "a pass has at least one row"
        return self._weighted / self._total

    def log_weights(self, rows: Rows) -> Float[Tensor, "hq n"]:
        """Logarithms of a block's attention weights, once all rows have been added; queries run inside of heads."""
        assert isinstance(self._greatest, Tensor), "a pass has at least one row"
        assert isinstance(self._total, Tensor)
        _, logits = self.look(self.rows_of(rows))
        return logits.sub_(self._greatest.to(logits.dtype)).sub_(self._total.log().to(logits.dtype))

    @abstractmethod
    def look(self, rows: Rows) -> tuple[Float[Tensor, "n e"], Float[Tensor, "hq n"]]:
        """A block's values, and its logits, which may be changed in place."""


class RunningReading(RunningSoftmax):
    """What the maps of a `DualMLP` read, over rows that pass by."""

    def __init__(self, module: DualMLP, layer: str, kind: Literal["reads", "pools"]) -> None:
        super().__init__(1, module.k, layer, kind)
        self.module = module

    def result(self) -> Float[Tensor, "1 k e"]:
        """A^T V of all rows so far."""
        return self.read().to(self.module.logits.weight.dtype)[None]

    def look(self, rows: Rows) -> tuple[Float[Tensor, "n e"], Float[Tensor, "k n"]]:
        """A block's values and logits."""
        return self.module.values(rows)[0], self.module.logits(rows)[0].T.contiguous()


class RunningAttention(RunningSoftmax):
    """MAB(S, Y) for a few queries S, inducing points or seeds, over rows Y that pass by.

    The rows are attended to as they are: the projections to keys and values are moved to the queries' side, as in
    `pointset.nn.fast.absorbed`.

    Args:
        mab: the block.
        S: [1, q, d_query], its queries.
        prepare: what the rows go through before `mab` sees them as Y; the block's own norm comes after it.
        layer: the block's name inside the model.
        kind: "reads" or "pools", as in `pointset.attention_maps`.
    """

    def __init__(self, mab: MAB, S: Tensor, prepare: Rowwise, layer: str, kind: Literal["reads", "pools"]) -> None:
        attention = mab.multihead
        super().__init__(attention.heads, S.shape[1], layer, kind)
        Q = attention.query(mab.norm_query(S))
        self.mab, self.prepare = mab, prepare
        self._residual = S if mab.form == "paper" else Q
        self._folded = absorbed_queries(attention, Q)[0].flatten(0, 1)  # [h q, d_key]

    def result(self) -> Float[Tensor, "1 q d"]:
        """O of the block, for all rows so far."""
        attention = self.mab.multihead
        read = self.read().to(self._folded.dtype).unflatten(0, (self.heads, -1))
        attended = absorbed_values(attention, read[None])
        return self.mab.complete(self._residual, attention.output(attended))

    def look(self, rows: Rows) -> tuple[Float[Tensor, "n d_key"], Float[Tensor, "hq n"]]:
        """A block's rows as they are attended to, and its logits."""
        Y = self.mab.norm_key(self.prepare(rows))[0]
        return Y, self._folded @ Y.T
