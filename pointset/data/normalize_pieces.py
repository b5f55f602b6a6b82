"""Normalisations of one cloud that arrives in pieces: `pointset.data.normalize`, in constant memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.data.chunks import Chunks, blocks, fresh_pieces
from pointset.data.normalize import normalization

ROWS = 65_536
"""Points at a time."""

Points = Callable[[], Iterator[Float[Tensor, "n 3"]]]


def normalize_chunks(chunks: Chunks, how: str) -> Points:
    """What `normalize_points` makes of a whole cloud, piece by piece.

    Goes through the cloud twice before it returns (not for "none"): for its centre, and for its radius or deviation,
    both in float64. So a cloud far away from the origin keeps its digits.

    Args:
        chunks: pieces [n_i, 3], as for `model.stream`; such as `pointset.data.open_scan(path)`.
        how: one of `pointset.data.normalize.NORMALIZATIONS`.

    Returns:
        A function that gives a fresh iterator over float64 pieces [n_i, 3] each time, good until the next one is asked
        for.

    Raises:
        PointsetError: `how` is unknown, or the chunks are no points, or run only once.
    """
    normalization(how)
    pieces = fresh_pieces(chunks)

    def points() -> Iterator[Tensor]:
        return blocks(pieces, width=3, rows=ROWS, dtype=torch.float64)

    if how == "none":
        return points
    frame = _frame(points, by_axis=how == "unit-sphere")
    return lambda: (frame.centred(block).div_(frame.spread) for block in points())


@dataclass(frozen=True)
class _Frame:
    """Where a cloud is, and how large; a cloud without extent is exactly 0 in it."""

    origin: Tensor
    """One of the points, [3], or one of its numbers, [1]: where sums are taken from."""
    shift: Tensor
    """From there to the centre."""
    spread: Tensor

    def centred(self, points: Tensor) -> Tensor:
        return (points - self.origin).sub_(self.shift)


def _frame(points: Points, *, by_axis: bool) -> _Frame:
    """Mean point and largest distance from it, or (not `by_axis`) mean number and deviation of all numbers."""
    origin, total, count = torch.zeros(1), torch.zeros(1, dtype=torch.float64), 0
    for block in points():
        if not count:
            origin = block[0, : 3 if by_axis else 1].clone()
        seen = block - origin
        total = total + (seen.sum(dim=0) if by_axis else seen.sum())
        count += len(block)
    frame = _Frame(origin, total / max(count if by_axis else 3 * count, 1), torch.ones(()))
    spread = torch.zeros((), dtype=torch.float64)
    for block in points():
        squares = frame.centred(block).square_()
        spread = torch.maximum(spread, squares.sum(dim=1).amax()) if by_axis else spread + squares.sum() / (3 * count)
    return _Frame(origin, frame.shift, torch.where(spread > 0, spread.sqrt(), 1.0))
