"""The logits of a cloud that is read in pieces."""

from torch import Tensor, nn

from pointset.data.chunks import Chunks
from pointset.inputs import takes
from pointset.streaming.chains import chain_of
from pointset.streaming.passes import EmptyCloudError, Passes, inputs_of, streaming


@takes(model=nn.Module)
def stream_logits(model: nn.Module, chunks: Chunks) -> Tensor:
    """The logits of `model(cloud[None])` for a cloud that is read in pieces: see `SetClassifier.stream`.

    Args:
        model: a model that can be streamed.
        chunks: the cloud in pieces [n_i, inputs], as for `model.stream`.

    Returns:
        Logits [1, classes].

    Raises:
        StreamingError: a part of the model needs the whole set at once.

    Example:
        >>> cloud = torch.rand(800, 3)
        >>> logits = pointset.streaming.stream_logits(model.eval(), [cloud[:500], cloud[500:]])
        >>> torch.allclose(logits, model(cloud[None]), atol=1e-4)
        True
    """
    with streaming(model):
        chain, passes = chain_of(model), Passes(chunks, model)
        try:
            for part in chain.encoder:
                passes.layers.append(passes.settle(part))
            return chain.head(passes.settle(chain.pool))
        except EmptyCloudError:
            return model(next(model.parameters()).new_zeros(1, 0, inputs_of(model)))
