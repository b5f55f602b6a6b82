"""One cloud that arrives in pieces, cut into blocks of one size; memory holds one piece and one block at a time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from pointset.errors import PointsetError
from pointset.inputs import as_numbers

Piece = Tensor | np.ndarray
Chunks = Callable[[], Iterable[Piece]] | Iterable[Piece] | Piece
"""A function that returns a fresh iterator over pieces [n_i, 3], a list of pieces, or one cloud [n, 3]."""


def blocks(
    chunks: Chunks, *, width: int, rows: int, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Iterator[Float[Tensor, "n width"]]:
    """Go once through a cloud, in blocks of `rows` points, the last one shorter; none is empty.

    The blocks do not depend on where the cloud was cut. They share one buffer: a block is good until the next one is
    asked for.

    Args:
        chunks: see `Chunks`; the pieces are numbers of any type, on any device.
        width: numbers per point.
        rows: points per block.
        dtype, device: of the blocks.

    Raises:
        PointsetError: `chunks` is something else, or a piece is not [n, width] finite numbers that `dtype` can hold;
            pieces are counted from 0.
    """
    buffer = torch.empty(rows, width, dtype=dtype, device=device)
    filled = number = 0
    for piece in fresh_pieces(chunks)():
        check_piece(piece, number, width)
        start = 0
        while start < len(piece):
            stop = min(len(piece), start + rows - filled)
            numbers = _numbers(piece[start:stop])
            _require_finite(buffer[filled : filled + stop - start].copy_(numbers), numbers, number)
            filled, start = filled + stop - start, stop
            if filled == rows:
                yield buffer
                filled = 0
        del piece  # or it would live on while the source makes the next one
        number += 1  # noqa: SIM113 - enumerate holds a piece until the next one is there
    if filled:
        yield buffer[:filled]


def fresh_pieces(chunks: Chunks) -> Callable[[], Iterable[Piece]]:
    """A function that starts the pieces again at every call.

    Raises:
        PointsetError: `chunks` can be gone through once only, or has no pieces.
    """
    if isinstance(chunks, Tensor | np.ndarray):
        return lambda: (chunks,)
    if isinstance(chunks, Iterator):
        raise PointsetError(
            f"the chunks are a {type(chunks).__name__}, which runs once, and a cloud is gone through several times: "
            "give a function that makes a fresh one, as in model.stream(lambda: pieces(...))"
        )
    if callable(chunks):
        return lambda: _iterable(chunks(), "what chunks() gave")
    pieces = _iterable(chunks, "chunks")
    return lambda: pieces


def check_piece(piece: Any, number: int, width: int) -> None:
    """Refuse, with a PointsetError, what is not numbers [n, width]."""
    if not isinstance(piece, Tensor | np.ndarray):
        raise PointsetError(
            f"piece {number} of the cloud is a {type(piece).__name__}: give tensors or arrays [n, {width}]"
        )
    numbers = not piece.is_complex() if isinstance(piece, Tensor) else piece.dtype.kind in "fiu"
    if piece.ndim != 2 or piece.shape[1] != width or not numbers:
        raise PointsetError(
            f"piece {number} of the cloud must be numbers [n, {width}], got {piece.dtype} {list(piece.shape)}"
        )


def _require_finite(held: Tensor, given: Tensor, number: int) -> None:
    """Refuse numbers that are not finite, or no longer are when they are held in a narrower type."""
    if bool(held.sum().isfinite()) or bool(held.isfinite().all()):  # a thirtieth of the work; sums may overflow
        return
    if bool(given.isfinite().all()):
        greatest = float(given.abs().max())
        raise PointsetError(
            f"piece {number} of the cloud has a number of {greatest:.3g}, too large for {held.dtype}: scale it "
            "down, as normalize_chunks does"
        )
    raise PointsetError(f"piece {number} of the cloud has a number that is not finite: leave the point out")


def _iterable(found: Any, what: str) -> Iterable[Piece]:
    if isinstance(found, Tensor | np.ndarray):
        return (found,)
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise PointsetError(
            f"{what} is a {type(found).__name__}: give a function that makes an iterator over pieces [n, 3], a list of "
            "them, or pointset.data.open_scan(path)"
        )
    return found


def _numbers(rows: Piece) -> Tensor:
    if isinstance(rows, Tensor):
        return rows.detach()
    return as_numbers(rows)
