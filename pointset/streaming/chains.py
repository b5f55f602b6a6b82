"""Chains: models `head(pool(encoder(rows)))` split into their streaming parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from torch import Tensor, nn

import pointset.streaming.poolings  # noqa: F401 - registers further poolings with `pool_part`
from pointset.nn.context import DGCNN, PointNet
from pointset.streaming.layers import encoder_parts
from pointset.streaming.parts import Part, StreamingError, by_rows, gathered, pool_part
from pointset.streaming.running import Rowwise


@dataclass(frozen=True)
class Chain:
    """The parts of a model. A chain can be used once, because its parts are generators."""

    encoder: list[Part[Rowwise]]
    pool: Part[Tensor]
    head: Callable[[Tensor], Tensor]
    """From the pooled rows [1, k, d] to logits [1, classes]."""


@singledispatch
def chain_of(model: nn.Module) -> Chain:
    """The chain of a model; nothing is computed yet. `chain_of.register` adds a type of model.

    Raises:
        StreamingError: a part of the model needs the whole set at once, or the type is not registered.
    """
    raise StreamingError(f"a {type(model).__name__} has no encoder and pooling to stream through: call it on the cloud")


def chain_of_parts(encoder: Sequence[nn.Module], pool: nn.Module, head: Callable[[Tensor], Tensor]) -> Chain:
    """The chain of head(pool(encoder(rows))); messages call its parts `encoder.0`, ... and `pool`."""
    layers = [part for i, module in enumerate(encoder) for part in encoder_parts(module, f"encoder.{i}")]
    return Chain(layers, pool_part(pool, "pool"), head)


@chain_of.register
def _(model: PointNet) -> Chain:
    # Its layers expect packed rows, without a batch axis.
    rows = by_rows(lambda X: model.rows(X[0])[None])
    return Chain([rows], gathered("max"), lambda pooled: model.head(pooled[0]))


@chain_of.register
def _(model: DGCNN) -> Chain:
    raise StreamingError(
        "dgcnn searches the neighbours of every point among all points, so it needs the whole cloud at once: "
        "call the model on it, or use isab16-pma"
    )


def check_streams(model: nn.Module) -> None:
    """Raise a StreamingError with the reason if a model cannot be streamed.

    Args:
        model: any module.

    Raises:
        StreamingError: a part of the model needs the whole set at once, or cannot be streamed.

    Example:
        >>> pointset.streaming.check_streams(model)  # an ISAB streams, a SAB does not
    """
    chain_of(model)
