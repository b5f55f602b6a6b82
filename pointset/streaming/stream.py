"""The logits of a cloud that is read in pieces: repeated passes, each through more layers of the model."""

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from pointset.data.chunks import Chunks, blocks, fresh_pieces
from pointset.errors import PointsetError
from pointset.inputs import require_model
from pointset.nn.layers import in_evaluation_mode
from pointset.streaming.parts import StreamedPart, chain_of, check_streams
from pointset.streaming.running import Rowwise

Settled = TypeVar("Settled")

ROWS_OF_A_CORE = 4096
"""Points in a block, per CPU thread: their rows fit its cache. (isab16-pma, width 128, 2 threads, seconds for 200,000
points: 0.32 with 2,048, 0.31 with 4,096 and 8,192, 0.44 with 16,384.)"""
LARGEST_BLOCK = 65_536
"""Most points in a block: enough to keep a GPU busy."""


class EmptyCloudError(Exception):
    """The cloud has no points."""


class Passes:
    """A cloud, and the layers of a model that are settled: their statistics are known.

    Attributes:
        layers: the functions that each pass applies to the points.
        count: number of points of the cloud; None before the first pass.
        inputs: numbers per point that the model expects.
    """

    def __init__(self, chunks: Chunks, model: nn.Module) -> None:
        self._chunks = fresh_pieces(chunks)
        self._like = next(model.parameters())
        self.inputs = cast(int, model.inputs)
        self.layers: list[Rowwise] = []
        self.count: int | None = None

    def pooled(self, model: nn.Module) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The pooled rows of the cloud, and the head that follows; afterwards all layers are settled."""
        check_streams(model)
        encoder, pool, head = chain_of(model)
        for part in encoder:
            self.layers.append(self._settled(part))
        return self._settled(pool), head

    def _settled(self, part: StreamedPart[Settled]) -> Settled:
        while True:
            try:
                running = next(part)
            except StopIteration as done:
                return done.value
            for rows in self.encoded():
                for statistic in running:
                    statistic.add(rows)

    def encoded(self) -> Iterator[Tensor]:
        """Make one pass; yield the rows [1, n, d] that the last of the layers gives for each block.

        Raises:
            EmptyCloudError: the cloud has no points.
            PointsetError: a chunk has a wrong shape or type, or the number of points differs from the pass before.
        """
        count, like = 0, self._like
        size = block_rows(like.device)
        for points in blocks(self._chunks, width=self.inputs, rows=size, dtype=like.dtype, device=like.device):
            count += len(points)
            rows = points[None]
            for layer in self.layers:
                rows = layer(rows)
            yield rows
        if self.count is not None and count != self.count:
            raise PointsetError(
                f"the chunks had {self.count} points in the first pass and {count} in a later one: "
                "give a function that returns a fresh iterator over the same pieces each time"
            )
        self.count = count
        if not count:
            raise EmptyCloudError


def block_rows(device: torch.device) -> int:
    """The number of points in a block."""
    return min(ROWS_OF_A_CORE * torch.get_num_threads(), LARGEST_BLOCK) if device.type == "cpu" else LARGEST_BLOCK


def stream_logits(model: nn.Module, chunks: Chunks) -> Tensor:
    """The logits of `model(cloud[None])` for a cloud that is read in pieces: see `Classifier.stream`.

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
    require_model(model)
    with torch.no_grad(), in_evaluation_mode(model):
        passes = Passes(chunks, model)
        try:
            pooled, head = passes.pooled(model)
            return head(pooled)
        except EmptyCloudError:
            return model(next(model.parameters()).new_zeros(1, 0, passes.inputs))


def stream_rows(model: nn.Module, chunks: Chunks) -> Iterator[Tensor]:
    """The logits of every point of a cloud that is read in pieces: see `Segmenter.stream`.

    Args:
        model: a model that labels every point, and can be streamed.
        chunks: the cloud in pieces [n_i, inputs], as for `model.stream`.

    Returns:
        An iterator over logits [n_j, classes], of blocks of points in their order; nothing for an empty cloud.

    Raises:
        StreamingError: a part of the model needs the whole set at once.

    Example:
        >>> cloud, segmenter = torch.rand(800, 3), pointset.create_segmenter("rff-max", classes=5, dim=8)
        >>> [len(logits) for logits in pointset.streaming.stream_rows(segmenter, [cloud[:500], cloud[500:]])]
        [800]
    """
    require_model(model)
    passes = Passes(chunks, model)
    try:
        with torch.no_grad(), in_evaluation_mode(model):
            pooled, head = passes.pooled(model)
            logits_of = cast(Callable[[Tensor, Tensor], Tensor], head)
    except EmptyCloudError:
        return
    rows = passes.encoded()
    while True:
        with torch.no_grad(), in_evaluation_mode(model):  # not between the blocks: the caller may train there
            block = next(rows, None)
            if block is None:
                return
            logits = logits_of(block, pooled)[0]
        yield logits
