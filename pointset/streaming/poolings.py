"""The streaming forms of poolings other than plain statistics and PMA."""

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.pooling.asp import AttentiveStatisticsPool
from pointset.nn.pooling.cov import CovariancePool
from pointset.nn.pooling.gem import GeneralisedMeanPool
from pointset.nn.pooling.repset import ApproxRepSetPool
from pointset.nn.pooling.top import TopPool
from pointset.streaming.parts import Part, pool_part
from pointset.streaming.running import (
    Rows,
    Rowwise,
    Running,
    RunningMax,
    RunningMean,
    RunningSoftmax,
    RunningSum,
    exact_type,
)


class RunningOf:
    """A running statistic of function(rows)."""

    def __init__(self, running: Running, function: Rowwise) -> None:
        self._running, self._function = running, function

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        self._running.add(self._function(rows))


class RunningTop:
    """The k largest values of each feature."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._largest: Tensor | None = None

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        together = rows if self._largest is None else torch.cat([self._largest, rows], dim=1)
        self._largest = together.topk(min(self._k, together.shape[1]), dim=1).values

    def result(self) -> Float[Tensor, "1 k d"]:
        """The largest values of all rows so far; all values if there are fewer than k."""
        assert self._largest is not None, "a pass has at least one row"
        return self._largest


class RunningLogMean(RunningMax):
    """The logarithm of the mean of exp(x) of each feature: the largest x, and the sum of exp(x - largest)."""

    def __init__(self) -> None:
        super().__init__()
        self._total: Tensor | float = 0.0
        self._count = 0

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        before = self._largest
        super().add(rows)
        largest = super().result()
        if before is not None:
            self._total = self._total * (before - largest).exp()
        self._total = self._total + (rows - largest).exp().sum(dim=1, keepdim=True, dtype=exact_type(rows.device))
        self._count += rows.shape[1]

    def result(self) -> Float[Tensor, "1 1 d"]:
        """The logarithms of the means of all rows so far."""
        largest, total = super().result(), self._total
        assert isinstance(total, Tensor)
        return largest + (total / self._count).log().to(largest.dtype)


class RunningCovariance:
    """Covariance of the features; the mean of the first block is subtracted first, so that totals stay accurate."""

    def __init__(self) -> None:
        self._origin: Tensor | None = None
        self._mean = RunningMean()
        self._products: Tensor | float = 0.0

    def add(self, rows: Rows) -> None:
        """Add a block of rows."""
        if self._origin is None:
            self._origin = rows.mean(dim=1, keepdim=True)
        rows = (rows - self._origin).to(exact_type(rows.device))
        self._mean.add(rows)
        self._products = self._products + rows.transpose(1, 2) @ rows

    def result(self) -> Float[Tensor, "1 d d"]:
        """The covariance of all rows so far."""
        assert self._origin is not None, "a pass has at least one row"
        mean = self._mean.result()
        return (self._products / self._mean.count - mean.transpose(1, 2) @ mean).to(self._origin.dtype)


class RunningStatistics(RunningSoftmax):
    """Mean and variance of each feature under the weights of an `AttentiveStatisticsPool`.

    The mean of the first block is subtracted before squaring, so that totals stay accurate.
    """

    def __init__(self, module: AttentiveStatisticsPool, layer: str) -> None:
        super().__init__(1, 1, layer, "pools")
        self._module = module
        self._origin: Tensor | None = None

    def look(self, rows: Rows) -> tuple[Float[Tensor, "n _"], Float[Tensor, "1 n"]]:
        """The rows of a block and their squares, and its logits."""
        if self._origin is None:
            self._origin = rows[0].mean(dim=0)
        X = rows[0] - self._origin
        return torch.cat([X, X.square()], dim=1), self._module.logits(rows)[0].contiguous()

    def result(self) -> Float[Tensor, "1 1 _"]:
        """The pooled row for all rows so far."""
        assert self._origin is not None, "a pass has at least one row"
        mean, square = self.read()[None].chunk(2, dim=2)
        variance = (square - mean.square()).clamp(min=0.0)
        dtype = self._origin.dtype
        return self._module.side_by_side((mean + self._origin).to(dtype), variance.to(dtype))


@pool_part.register
def _(module: TopPool, name: str) -> Part[Tensor]:
    running = RunningTop(module.k)
    yield (running,)
    return running.result().mean(dim=1, keepdim=True)


@pool_part.register
def _(module: GeneralisedMeanPool, name: str) -> Part[Tensor]:
    running = RunningLogMean()
    yield (RunningOf(running, module.logarithms),)
    return module.of_mean(running.result())


@pool_part.register
def _(module: CovariancePool, name: str) -> Part[Tensor]:
    running = RunningCovariance()
    yield (RunningOf(running, module.reduced),)
    return module.of_covariance(running.result())


@pool_part.register
def _(module: ApproxRepSetPool, name: str) -> Part[Tensor]:
    running = RunningSum()
    yield (RunningOf(running, module.matches),)
    return running.result()


@pool_part.register
def _(module: AttentiveStatisticsPool, name: str) -> Part[Tensor]:
    running = RunningStatistics(module, name)
    yield (running,)
    return running.result()
