"""Encoders whose layers are connected past each other, as a chain: what is needed later travels beside the rows.

A block is then one tensor [1, n, width]: its points, the outputs that are kept, and the rows, side by side.
"""

import torch
from torch import Tensor, nn

from pointset.nn.layers import ConnectedLayers
from pointset.streaming.parts import Part, by_rows, encoder_part
from pointset.streaming.running import Rowwise, Running, RunningSoftmax


def encoder_parts(module: nn.Module, name: str) -> list[Part[Rowwise]]:
    """What a module of an encoder needs of the set; of connected layers, what their modules need one after the other.

    Raises:
        StreamingError: it needs the whole set at once, or is of a type that is not known here.
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
    """What a layer is given takes the place of the rows, or stands beside them where they are wanted again."""
    inputs = connected.widths[0]

    def enter(block: Tensor) -> Tensor:
        X, rows = block[..., :inputs], block[..., beside:]
        return torch.cat([block if connected.join else X, connected.enter(number, rows, X)], dim=-1)

    return by_rows(enter)


def _beside(part: Part[Rowwise], beside: int) -> Part[Rowwise]:
    """A part that works on the rows of a block and leaves alone the numbers that stand before them."""

    def rows_of(block: Tensor) -> Tensor:
        return block[..., beside:]

    try:
        while True:
            yield tuple(_behind(one, rows_of) for one in next(part))
    except StopIteration as done:
        settled: Rowwise = done.value
    return lambda block: torch.cat([block[..., :beside], settled(rows_of(block))], dim=-1)


def _behind(running: Running, prepare: Rowwise) -> Running:
    if not isinstance(running, RunningSoftmax):
        return _Behind(running, prepare)
    running.rows_of = prepare  # it stays what it is, as it may be watched too
    return running


class _Behind:
    """Gathers what is made of the rows that pass by."""

    def __init__(self, running: Running, prepare: Rowwise) -> None:
        self._running, self._prepare = running, prepare

    def add(self, rows: Tensor) -> None:
        """Add a block of rows."""
        self._running.add(self._prepare(rows))
