"""The streaming form of `ConnectedLayers`, whose later layers also need the coordinates or earlier outputs.

Each block is one tensor [1, n, width]: the concatenation of its coordinates, the layer outputs needed later, and the
current rows.
"""

import torch
from torch import Tensor, nn

from pointset.nn.layers import ConnectedLayers
from pointset.streaming.parts import Part, by_rows, encoder_part
from pointset.streaming.running import Rowwise, Running, RunningSoftmax


def encoder_parts(module: nn.Module, name: str) -> list[Part[Rowwise]]:
    """The parts of an encoder module: one, or for `ConnectedLayers` one for each step.

    Raises:
        StreamingError: a module needs the whole set at once, or its type is not registered.
    """
    return _connected(module, name) if isinstance(module, ConnectedLayers) else [encoder_part(module, name)]


def _connected(connected: ConnectedLayers, name: str) -> list[Part[Rowwise]]:
    inputs, *widths = connected.widths
    beside = inputs
    parts = [by_rows(lambda X: torch.cat([X, X], dim=-1))]
    for number, layer in enumerate(connected.layers):
        if number:
            parts.append(_entered(connected, number, beside))
            beside += widths[number - 1] if connected.join else 0
        for place, module in enumerate(layer):  # type: ignore[var-annotated,arg-type]
            parts.append(_beside(encoder_part(module, f"{name}.layers.{number}.{place}"), beside))
    parts.append(by_rows(lambda block: block[..., inputs:]))
    return parts + [encoder_part(module, f"{name}.join.{place}") for place, module in enumerate(connected.join)]


def _entered(connected: ConnectedLayers, number: int, beside: int) -> Part[Rowwise]:
    """Replace the current rows of a block by the input of layer `number`; keep them too if outputs are joined."""
    inputs = connected.widths[0]

    def enter(block: Tensor) -> Tensor:
        X, rows = block[..., :inputs], block[..., beside:]
        return torch.cat([block if connected.join else X, connected.enter(number, rows, X)], dim=-1)

    return by_rows(enter)


def _beside(part: Part[Rowwise], beside: int) -> Part[Rowwise]:
    """Apply a part to the current rows of a block, and keep the first `beside` columns unchanged."""

    def rows_of(block: Tensor) -> Tensor:
        return block[..., beside:]

    try:
        while True:
            yield tuple(_prepared(one, rows_of) for one in next(part))
    except StopIteration as done:
        settled: Rowwise = done.value
    return lambda block: torch.cat([block[..., :beside], settled(rows_of(block))], dim=-1)


def _prepared(running: Running, prepare: Rowwise) -> Running:
    """A statistic of prepare(rows) instead of the rows."""
    if not isinstance(running, RunningSoftmax):
        return _Prepared(running, prepare)
    running.rows_of = prepare  # no wrapper: `stream_attention` looks for instances of RunningSoftmax
    return running


class _Prepared:
    """A running statistic of prepare(rows)."""

    def __init__(self, running: Running, prepare: Rowwise) -> None:
        self._running, self._prepare = running, prepare

    def add(self, rows: Tensor) -> None:
        """Add a block of rows."""
        self._running.add(self._prepare(rows))
