"""Going through a cloud again and again, through more of the model each time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from pointset.data.chunks import Chunks, blocks, fresh_pieces
from pointset.errors import PointsetError
from pointset.nn.modes import in_evaluation_mode
from pointset.streaming.parts import Part
from pointset.streaming.running import Rowwise, Running

Settled = TypeVar("Settled")

ROWS_OF_A_CORE = 4096
"""Points of a block for each thread of a CPU: their rows stay in its cache. (isab16-pma, width 128, 2 threads, seconds
for 200,000 points: 0.32 with 2,048, 0.31 with 4,096 and 8,192, 0.44 with 16,384.)"""
MOST_ROWS = 65_536
"""Of a block: enough to keep a GPU busy."""


class EmptyCloudError(Exception):
    """The pieces hold no point."""


class Watcher(Protocol):
    """Something that looks at the rows before a settled layer, beside the points that they came from."""

    def watch(self, rows: Tensor, points: Tensor) -> None:
        """Take a block: rows [1, n, d] of points [n, inputs]."""


class Passes:
    """A cloud, and the layers of a model that are settled.

    Attributes:
        layers: what the points go through in every pass; add to it what `settle` returned.
        watchers: by the number of the layer before which they watch (len(layers): after the last one), for one pass.
        latest: what was gathered for the part that was settled last.
        count: points of the cloud, once it has been gone through.
    """

    def __init__(self, chunks: Chunks, model: nn.Module) -> None:
        self._chunks = fresh_pieces(chunks)
        self._like = next(model.parameters())
        self._width = inputs_of(model)
        self.layers: list[Rowwise] = []
        self.watchers: dict[int, Sequence[Watcher]] = {}
        self.latest: tuple[Running, ...] = ()
        self.count: int | None = None

    def settle(self, part: Part[Settled]) -> Settled:
        """Make as many passes as a part asks for, and return what it then is."""
        self.latest = ()
        while True:
            try:
                running = next(part)
            except StopIteration as done:
                return done.value
            self.run(running)
            self.latest += running

    def run(self, running: Sequence[Running] = ()) -> None:
        """Make one pass and let `running` gather the rows that come out of the last layer.

        Raises:
            EmptyCloudError: there is no point.
            PointsetError: the pieces are wrong, or hold other points than in the pass before.
        """
        count, like = 0, self._like
        size = block_rows(like.device)
        for points in blocks(self._chunks, width=self._width, rows=size, dtype=like.dtype, device=like.device):
            count += len(points)
            rows = points[None]
            for number, layer in enumerate(self.layers):
                self._show(number, rows, points)
                rows = layer(rows)
            self._show(len(self.layers), rows, points)
            for one in running:
                one.add(rows)
        self._check(count)
        self.watchers.clear()

    def _show(self, number: int, rows: Tensor, points: Tensor) -> None:
        for watcher in self.watchers.get(number, ()):
            watcher.watch(rows, points)

    def _check(self, count: int) -> None:
        if self.count is not None and count != self.count:
            raise PointsetError(
                f"the chunks gave {self.count} points at first and {count} when they were gone through again: "
                "give a function that makes a fresh iterator over the same pieces each time"
            )
        self.count = count
        if not count:
            raise EmptyCloudError


def block_rows(device: torch.device) -> int:
    """Points of a block."""
    return min(ROWS_OF_A_CORE * torch.get_num_threads(), MOST_ROWS) if device.type == "cpu" else MOST_ROWS


def inputs_of(model: nn.Module) -> int:
    """Numbers per point."""
    return cast(int, model.inputs)


@contextmanager
def streaming(model: nn.Module) -> Iterator[None]:
    """Nothing is trained in this block: no gradients, and the model in evaluation mode."""
    with torch.no_grad(), in_evaluation_mode(model):
        yield
