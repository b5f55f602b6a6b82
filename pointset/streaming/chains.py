"""Models taken apart: `head(pool(encoder(rows)))`, each part in the form that streams."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

from torch import Tensor, nn

from pointset.nn.context import DGCNN, PointNet
from pointset.streaming.parts import Part, StreamingError, by_rows, encoder_part, gathered, pool_part
from pointset.streaming.running import Rowwise, RunningMax
from pointset.zoo.names import PackedClassifier, SetClassifier


@dataclass(frozen=True)
class Chain:
    """The parts of a model, good for one run."""

    encoder: list[Part[Rowwise]]
    pool: Part[Tensor]
    head: Callable[[Tensor], Tensor]
    """From the pooled rows [1, k, d] to logits [1, classes]."""


@singledispatch
def chain_of(model: nn.Module) -> Chain:
    """Take a model apart; nothing is computed yet.

    Raises:
        StreamingError: a part of it needs the whole set at once, or it is of a type that is not known here.
    """
    raise StreamingError(f"a {type(model).__name__} has no encoder and pooling to stream through: call it on the cloud")


@chain_of.register
def _(model: SetClassifier) -> Chain:
    encoder = [encoder_part(module, f"encoder.{i}") for i, module in enumerate(model.encoder)]
    return Chain(encoder, pool_part(model.pool, "pool"), model.head)


@chain_of.register
def _(model: PackedClassifier) -> Chain:
    return chain_of(model.model)


@chain_of.register
def _(model: PointNet) -> Chain:
    # Its layers take packed rows, without a batch.
    rows = by_rows(lambda X: model.rows(X[0])[None])
    return Chain([rows], gathered(RunningMax()), lambda pooled: model.head(pooled[0]))


@chain_of.register
def _(model: DGCNN) -> Chain:
    raise StreamingError(
        "dgcnn looks for every point's neighbours among all the others, so that it needs the whole cloud at once: "
        "call the model on it, or take isab16-pma"
    )


def check_streams(model: nn.Module) -> None:
    """Raise a StreamingError that says why, unless `model.stream` can work."""
    chain_of(model)
