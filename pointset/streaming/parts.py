"""Parts: the modules of a model as generators that request passes over the cloud.

Each `yield` of a part gives the statistics that one pass over its input rows must accumulate. When they are complete,
the part returns the settled result: for an encoder module a function of rows, for a pooling the pooled rows. So a
row-wise part never yields, ISAB yields once, and PMA with seeds computed from the mean of the set yields twice.
`encoder_part` and `pool_part` dispatch on the type of the module; `register` adds a type. A module that cannot be
streamed raises a StreamingError when its part is created, before anything is computed.
"""

from collections.abc import Callable, Generator, Sequence
from functools import singledispatch
from typing import Literal, TypeVar

from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, PooledSeeds
from pointset.nn.encoders.dumlp import InteractionLayer
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.nn.layers import Masked
from pointset.nn.masks import StatisticName
from pointset.nn.norms import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, NoNorm, SetNorm
from pointset.nn.pooling.aggregation import AggregationPool
from pointset.nn.pooling.dumlp import DualMLP, NormedLayers
from pointset.nn.pooling.joined import JoinedPool
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.sorted import SortedPool
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import part_of
from pointset.streaming.running import (
    Rowwise,
    Running,
    RunningAttention,
    RunningDeviation,
    RunningMax,
    RunningMean,
    RunningMin,
    RunningReading,
    RunningSum,
)

RUNNING: dict[StatisticName, type[RunningMax | RunningSum]] = {
    "max": RunningMax,
    "min": RunningMin,
    "mean": RunningMean,
    "sum": RunningSum,
    "deviation": RunningDeviation,
}
"""The running versions of the statistics in `pointset.nn.masks.STATISTICS`, by name."""

Settled = TypeVar("Settled")
Part = Generator[tuple[Running, ...], None, Settled]


class StreamingError(PointsetError):
    """A part of the model needs the whole set at once; the message names it.

    Example:
        >>> try:
        ...     pointset.streaming.check_streams(pointset.create_model("sab-max", dim=16))
        ... except pointset.streaming.StreamingError as error:
        ...     print(isinstance(error, pointset.PointsetError))
        True
    """


@singledispatch
def encoder_part(module: nn.Module, name: str) -> Part[Rowwise]:
    """The streaming form of an encoder module: a generator that returns a function of rows.

    Args:
        module: called as `module(X, mask)`.
        name: name of the module inside its model, for errors.

    Returns:
        The part: it yields the statistics to accumulate in each pass.

    Raises:
        StreamingError: the module needs the whole set at once, or its type is not registered here.

    Example:
        >>> part = pointset.streaming.encoder_part(pointset.nn.ISAB(3, 16, inducing=4), "encoder")
    """
    raise _unknown(module, name, "encoder_part")


@singledispatch
def pool_part(module: nn.Module, name: str) -> Part[Tensor]:
    """The streaming form of a pooling: a generator that returns the pooled rows [1, k, d].

    Args:
        module: called as `module(Z, mask)`.
        name: name of the module inside its model, for errors.

    Returns:
        The part: it yields the statistics to accumulate in each pass.

    Raises:
        StreamingError: the module needs the whole set at once, or its type is not registered here.

    Example:
        >>> part = pointset.streaming.pool_part(pointset.nn.MaxPool(), "pool")
    """
    raise _unknown(module, name, "pool_part")


@encoder_part.register(Masked)
@encoder_part.register(NoNorm)
@encoder_part.register(LayerNorm)
@encoder_part.register(BatchNorm)
def _(module: Rowwise, name: str) -> Part[Rowwise]:
    return by_rows(module)


@encoder_part.register
def _(module: EquivariantLayer, name: str) -> Part[Rowwise]:
    encoder_part(module.norm, f"{name}.norm")
    return _centred(module)


def _centred(module: EquivariantLayer) -> Part[Rowwise]:
    statistic = yield from gathered(module.statistic)
    return lambda X: module.norm(module.gamma(X - statistic)).tanh_()


@encoder_part.register
def _(module: ISAB, name: str) -> Part[Rowwise]:
    _check_norms(module.reads, f"{name}.reads", "norm_key")
    _check_norms(module.writes, f"{name}.writes", "norm_query", "norm_hidden", "norm_attended", "norm_output")
    _check_attention(module.reads, f"{name}.reads")
    return _induced(module, name)


@encoder_part.register
def _(module: NormedLayers, name: str) -> Part[Rowwise]:
    for number, norm in enumerate(module.norm):
        encoder_part(norm, f"{name}.norm.{number}")
    return by_rows(module)


@encoder_part.register
def _(module: InteractionLayer, name: str) -> Part[Rowwise]:
    _check_networks(module.reads, f"{name}.reads")
    encoder_part(module.norm, f"{name}.norm")
    return _interacting(module, name)


@encoder_part.register
def _(module: SAB, name: str) -> Part[Rowwise]:
    raise StreamingError(
        f"{name} is a SAB, where every point attends to every other, so it needs the whole cloud at once: "
        "call the model on it, or use an encoder with inducing points, such as isab16"
    )


@encoder_part.register
def _(module: SetNorm, name: str) -> Part[Rowwise]:
    kind = {GroupNorm: "a group norm", InstanceNorm: "an instance norm"}.get(type(module), "a set norm")
    raise StreamingError(
        f"{name} is {kind}, whose mean and variance are computed over all points, so it needs the whole cloud "
        'at once: call the model on it, or use norm="layer" or norm="batch"'
    )


@pool_part.register
def _(module: StatisticPool, name: str) -> Part[Tensor]:
    return of_statistics(module)


@pool_part.register
def _(module: PMA, name: str) -> Part[Tensor]:
    _check_norms(module.mab, f"{name}.mab", "norm_key")
    _check_attention(module.mab, f"{name}.mab")
    return _seeded(module, name)


@pool_part.register
def _(module: DualMLP, name: str) -> Part[Tensor]:
    _check_networks(module, name)
    return _read(module, name, "pools")


@pool_part.register
def _(module: AttentionPool, name: str) -> Part[Tensor]:
    return _then(pool_part(module.pma, f"{name}.pma"), module.finish)


@pool_part.register
def _(module: SortedPool, name: str) -> Part[Tensor]:
    raise StreamingError(
        f"{name} sorts each feature over all points, so it needs the whole cloud at once: "
        "call the model on it, or pool by max, mean, sum, max+mean or pma"
    )


@pool_part.register
def _(module: JoinedPool, name: str) -> Part[Tensor]:
    parts = [pool_part(pool, f"{name}.pools.{number}") for number, pool in enumerate(module.pools)]
    return _then(_together(parts), module.side_by_side)


@pool_part.register
def _(module: AggregationPool, name: str) -> Part[Tensor]:
    raise StreamingError(
        f"{name} is an aggregation of torch-geometric, which needs all points at once: "
        "call the model on the whole cloud, or pool by max, mean, sum, max+mean or pma"
    )


def by_rows(function: Rowwise) -> Part[Rowwise]:
    """The part of a row-wise function: it needs no statistics of the set."""
    yield from ()
    return function


def gathered(statistic: StatisticName) -> Part[Tensor]:
    """A part that accumulates one statistic of the set in one pass, and returns it."""
    running = RUNNING[statistic]()
    yield (running,)
    return running.result()


def of_statistics(module: StatisticPool | PooledSeeds) -> Part[Tensor]:
    """A part that accumulates the statistics of a module in one pass, and returns its function of them."""
    running = {name: RUNNING[name]() for name in dict.fromkeys(module.statistics)}
    yield tuple(running.values())
    return module.of_statistics({name: one.result() for name, one in running.items()})


def _induced(module: ISAB, name: str) -> Part[Rowwise]:
    reads = RunningAttention(module.reads, module.inducing_points, nn.Identity(), f"{name}.reads", "reads")
    yield (reads,)
    H = reads.result()
    return lambda X: module.writes(X, H)


def _interacting(module: InteractionLayer, name: str) -> Part[Rowwise]:
    S = yield from _read(module.reads, f"{name}.reads", "reads")
    return lambda X: module.write(X, S)


def _read(module: DualMLP, name: str, kind: Literal["reads", "pools"]) -> Part[Tensor]:
    running = RunningReading(module, name, kind)
    yield (running,)
    return running.result()


def _seeded(module: PMA, name: str) -> Part[Tensor]:
    S: Tensor | None = module.seeds
    if module.pooled_seeds is not None:
        S = yield from of_statistics(module.pooled_seeds)
    assert S is not None
    pools = RunningAttention(module.mab, S, module.feed_forward, f"{name}.mab", "pools")
    yield (pools,)
    return pools.result()


def _together(parts: Sequence[Part[Settled]]) -> Part[list[Settled]]:
    """Run several parts together, so that they share their passes."""
    settled: dict[int, Settled] = {}
    while len(settled) < len(parts):
        running: tuple[Running, ...] = ()
        for number in (number for number in range(len(parts)) if number not in settled):
            try:
                running += next(parts[number])
            except StopIteration as done:
                settled[number] = done.value
        if running:
            yield running
    return [settled[number] for number in range(len(parts))]


def _then(part: Part[Settled], function: Callable[[Settled], Tensor]) -> Part[Tensor]:
    pooled = yield from part
    return function(pooled)


def _check_norms(mab: MAB, name: str, *norms: str) -> None:
    """Raise a StreamingError if one of these norms of a MAB is not row-wise."""
    for norm in norms:
        encoder_part(getattr(mab, norm), f"{name}.{norm}")


def _check_networks(module: DualMLP, name: str) -> None:
    encoder_part(module.logits, f"{name}.logits")
    encoder_part(module.values, f"{name}.values")


def _check_attention(mab: MAB, name: str) -> None:
    """Raise a StreamingError unless the attention can be computed with running sums."""
    if not mab.multihead.is_plain:
        raise StreamingError(
            f"{name} uses {mab.multihead.weights.extra_repr()} weights of an {type(mab.multihead.score).__name__}; "
            "only softmax weights of a DotScore or BilinearScore can be streamed: call the model on the whole cloud"
        )


def _unknown(module: nn.Module, name: str, registry: str) -> StreamingError:
    part = part_of(module)
    called = f" ({part.kind} {part.name!r})" if part else ""
    return StreamingError(
        f"{name} is a {type(module).__name__}{called}, which cannot be streamed: register its streaming form with "
        f"pointset.streaming.{registry}.register, or call the model on the whole cloud"
    )
