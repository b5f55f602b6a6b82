"""Parts: the modules of a model as generators that request passes over the cloud.

Each `yield` of a part gives the statistics that one pass over its input rows must accumulate. When they are complete,
the part returns the settled result: for an encoder module a function of rows, for a pooling the pooled rows. So a
row-wise part never yields, ISAB yields once, and PMA with seeds computed from the mean of the set yields twice.
`stream_part` dispatches on the type of the module. A part whose module cannot be streamed raises a StreamingError
before its first request, so `check_streams` knows before anything is read.
"""

from collections.abc import Callable, Generator
from functools import singledispatch
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.blocks import ISAB, MAB, PMA, PooledSeeds
from pointset.nn.context import PointNet
from pointset.nn.encoders.deepsets import EquivariantLayer
from pointset.nn.encoders.dumlp import InteractionLayer
from pointset.nn.layers import Masked, in_evaluation_mode
from pointset.nn.norms import BatchNorm, LayerNorm, NoNorm
from pointset.nn.pooling.dumlp import DualMLP, NormedLayers
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.statistics import JoinedPool, StatisticPool
from pointset.nn.registry import part_of
from pointset.streaming.running import Rowwise, Running, RunningStatistic, running_attention, running_maps

Settled = TypeVar("Settled")
StreamedPart = Generator[tuple[Running, ...], None, Settled]


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
def stream_part(module: nn.Module, name: str) -> StreamedPart[Any]:
    """The streaming form of an encoder module or a pooling; `stream_part.register` adds a type.

    Args:
        module: called as `module(X, mask)`.
        name: name of the module inside its model, for errors.

    Returns:
        A generator that yields the statistics to accumulate in each pass. It returns a function of rows for an encoder
        module, and the pooled rows [1, k, d] for a pooling.

    Raises:
        StreamingError: the module needs the whole set at once, or its type is not registered.

    Example:
        >>> part = pointset.streaming.stream_part(pointset.nn.MaxPool(), "pool")
    """
    registered = part_of(module)
    origin = f" ({registered.kind} {registered.name!r})" if registered else ""
    raise StreamingError(
        f"{name} is of type {type(module).__name__}{origin}, which needs the whole cloud at once: call the model on "
        'it, use parts that stream (rff, rffp, isab16; norm="layer" or norm="batch"; max, mean, sum, max+mean, pma), '
        "or register its streaming form with pointset.streaming.stream_part.register"
    )


def _settled(value: Settled) -> StreamedPart[Settled]:
    yield from ()
    return value


@stream_part.register(Masked)
@stream_part.register(NoNorm)
@stream_part.register(LayerNorm)
@stream_part.register(BatchNorm)
def _(module: Rowwise, name: str) -> StreamedPart[Rowwise]:
    return _settled(module)


@stream_part.register
def _(module: NormedLayers, name: str) -> StreamedPart[Rowwise]:
    for number, norm in enumerate(module.norm):
        stream_part(norm, f"{name}.norm.{number}")
    return _settled(module)


@stream_part.register
def _(module: EquivariantLayer, name: str) -> StreamedPart[Rowwise]:
    stream_part(module.norm, f"{name}.norm")
    statistic = yield from _one_pass(RunningStatistic(module.statistic))
    return lambda X: module.norm(module.gamma(X - statistic)).tanh_()


@stream_part.register
def _(module: ISAB, name: str) -> StreamedPart[Rowwise]:
    _check_reading(module.reads, f"{name}.reads")
    for norm in ("norm_query", "norm_hidden", "norm_attended", "norm_output"):
        stream_part(getattr(module.writes, norm), f"{name}.writes.{norm}")
    H = yield from _read(module.reads, module.inducing_points, nn.Identity(), f"{name}.reads")
    return lambda X: module.writes(X, H)


@stream_part.register
def _(module: InteractionLayer, name: str) -> StreamedPart[Rowwise]:
    stream_part(module.norm, f"{name}.norm")
    S = yield from _dual_mlp(module.reads, f"{name}.reads")
    return lambda X: module.write(X, S)


@stream_part.register(StatisticPool)
@stream_part.register(PooledSeeds)
def _(module: StatisticPool | PooledSeeds, name: str) -> StreamedPart[Tensor]:
    running = {statistic: RunningStatistic(statistic) for statistic in dict.fromkeys(module.statistics)}
    yield tuple(running.values())
    return module.of_statistics({name: statistic.result() for name, statistic in running.items()})


@stream_part.register
def _(module: PMA, name: str) -> StreamedPart[Tensor]:
    _check_reading(module.mab, f"{name}.mab")
    S = module.seeds if module.pooled_seeds is None else (yield from stream_part(module.pooled_seeds, name))
    return (yield from _read(module.mab, S, module.feed_forward, f"{name}.mab"))


@stream_part.register
def _(module: DualMLP, name: str) -> StreamedPart[Tensor]:
    return _dual_mlp(module, name)


@stream_part.register
def _(module: AttentionPool, name: str) -> StreamedPart[Tensor]:
    return module.finish((yield from stream_part(module.pma, f"{name}.pma")))


@stream_part.register
def _(module: JoinedPool, name: str) -> StreamedPart[Tensor]:
    """Run the poolings together, so that they share their passes."""
    parts = [stream_part(pool, f"{name}.pools.{number}") for number, pool in enumerate(module.pools)]
    pooled: dict[int, Tensor] = {}
    while len(pooled) < len(parts):
        running: tuple[Running, ...] = ()
        for number in (number for number in range(len(parts)) if number not in pooled):
            try:
                running += next(parts[number])
            except StopIteration as done:
                pooled[number] = done.value
        if running:
            yield running
    return module.side_by_side([pooled[number] for number in range(len(parts))])


def _one_pass(running: Running) -> StreamedPart[Tensor]:
    yield (running,)
    return running.result()


def _dual_mlp(module: DualMLP, name: str) -> StreamedPart[Tensor]:
    stream_part(module.logits, f"{name}.logits")
    stream_part(module.values, f"{name}.values")
    return (yield from _one_pass(running_maps(module)))


def _read(mab: MAB, S: Tensor | None, prepare: Rowwise, name: str) -> StreamedPart[Tensor]:
    """What a few queries S read, with running sums."""
    _check_reading(mab, name)
    assert S is not None
    return (yield from _one_pass(running_attention(mab, S, prepare)))


def _check_reading(mab: MAB, name: str) -> None:
    """Raise a StreamingError unless a few queries can read the rows with running sums."""
    stream_part(mab.norm_key, f"{name}.norm_key")
    if not mab.multihead.is_plain:
        raise StreamingError(
            f"{name} uses {mab.multihead.weights.extra_repr()} weights of its {type(mab.multihead.score).__name__}; "
            "only softmax weights of a DotScore or BilinearScore can be streamed: call the model on the whole cloud"
        )


def chain_of(model: nn.Module) -> tuple[list[StreamedPart[Rowwise]], StreamedPart[Tensor], Callable[[Tensor], Tensor]]:
    """The parts of a `SetClassifier` or a PointNet: encoder, pooling and head; no point is read yet.

    The head computes logits from the pooled rows. The parts are generators, so they can be used once.
    """
    model = getattr(model, "model", model)  # a `PackedClassifier` has one
    if isinstance(model, PointNet):  # its layers expect packed rows, without a batch axis
        rows = _settled(lambda X: model.rows(X[0])[None])
        return [rows], _one_pass(RunningStatistic("max")), lambda pooled: model.head(pooled[0])
    encoder, pool, head = (getattr(model, name, None) for name in ("encoder", "pool", "head"))
    if not isinstance(encoder, nn.ModuleList) or pool is None or head is None:
        raise StreamingError(f"a {type(model).__name__} has no encoder and pooling to stream: call it on the cloud")
    parts = [stream_part(module, f"encoder.{number}") for number, module in enumerate(encoder)]
    return parts, stream_part(pool, "pool"), head


def check_streams(model: nn.Module) -> None:
    """Raise a StreamingError with the reason if a model cannot be streamed.

    Args:
        model: any module.

    Raises:
        StreamingError: a part of the model needs the whole set at once, or cannot be streamed.

    Example:
        >>> pointset.streaming.check_streams(model)  # an ISAB streams, a SAB does not
    """
    with torch.no_grad(), in_evaluation_mode(model):
        encoder, pool, _ = chain_of(model)
        for part in (*encoder, pool):
            next(part, None)  # up to its first request
