"""The logits of a cloud that arrives in pieces."""

from torch import Tensor, nn

from pointset.data.chunks import Chunks
from pointset.inputs import takes
from pointset.streaming.chains import chain_of
from pointset.streaming.passes import EmptyCloudError, Passes, inputs_of, streaming


@takes(model=nn.Module)
def stream_logits(model: nn.Module, chunks: Chunks) -> Tensor:
    """What `model(cloud[None])` gives, of a cloud that never is in memory as a whole: see `SetClassifier.stream`."""
    with streaming(model):
        chain, passes = chain_of(model), Passes(chunks, model)
        try:
            for part in chain.encoder:
                passes.layers.append(passes.settle(part))
            return chain.head(passes.settle(chain.pool))
        except EmptyCloudError:
            return model(next(model.parameters()).new_zeros(1, 0, inputs_of(model)))
