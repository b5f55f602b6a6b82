"""Models taken apart: `head(pool(encoder(rows)))`, each part in the form that streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

from torch import Tensor, nn

import pointset.streaming.poolings  # noqa: F401 - teaches `pool_part` its poolings
from pointset.nn.context import DGCNN, PointNet
from pointset.streaming.layers import encoder_parts
from pointset.streaming.parts import Part, StreamingError, by_rows, gathered, pool_part
from pointset.streaming.running import Rowwise


@dataclass(frozen=True)
class Chain:
    """The parts of a model, good for one run."""

    encoder: list[Part[Rowwise]]
    pool: Part[Tensor]
    head: Callable[[Tensor], Tensor]
    """From the pooled rows [1, k, d] to logits [1, classes]."""


@singledispatch
def chain_of(model: nn.Module) -> Chain:
    """Take a model apart; nothing is computed yet. `chain_of.register` teaches it another type of model.

    Raises:
        StreamingError: a part of it needs the whole set at once, or it is of a type that is not known here.
    """
    raise StreamingError(f"a {type(model).__name__} has no encoder and pooling to stream through: call it on the cloud")


def chain_of_parts(encoder: Sequence[nn.Module], pool: nn.Module, head: Callable[[Tensor], Tensor]) -> Chain:
    """The chain of head(pool(encoder(rows))), whose parts are called `encoder.0`, ... and `pool`."""
    layers = [part for i, module in enumerate(encoder) for part in encoder_parts(module, f"encoder.{i}")]
    return Chain(layers, pool_part(pool, "pool"), head)


@chain_of.register
def _(model: PointNet) -> Chain:
    # Its layers take packed rows, without a batch.
    rows = by_rows(lambda X: model.rows(X[0])[None])
    return Chain([rows], gathered("max"), lambda pooled: model.head(pooled[0]))


@chain_of.register
def _(model: DGCNN) -> Chain:
    raise StreamingError(
        "dgcnn searches the neighbours of every point among all points, so it needs the whole cloud at once: "
        "call the model on it, or take isab16-pma"
    )


def check_streams(model: nn.Module) -> None:
    """Raise a StreamingError with the reason if `model.stream` cannot work.

    Args:
        model: any module.

    Raises:
        StreamingError: it needs the whole set at once.

    Example:
        >>> pointset.streaming.check_streams(model)  # an ISAB streams, a SAB does not
    """
    chain_of(model)
