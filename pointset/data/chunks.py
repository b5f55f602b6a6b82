"""Re-cut a cloud that arrives in pieces into blocks of one size, with one piece and one block in memory at a time."""

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
    """Iterate once over a cloud in blocks of `rows` points; the last block may be shorter, and none is empty.

    The blocks do not depend on how the cloud was cut into pieces. They share one buffer: a block is valid until the
    next one is requested. A PointsetError names a piece, counted from 0, that is not [n, width] finite numbers which
    `dtype` can hold.
    """
    buffer = torch.empty(rows, width, dtype=dtype, device=device)
    filled = number = 0
    for piece in fresh_pieces(chunks)():
        _check_piece(piece, number, width)
        start = 0
        while start < len(piece):
            stop = min(len(piece), start + rows - filled)
            numbers = piece[start:stop].detach() if isinstance(piece, Tensor) else as_numbers(piece[start:stop])
            _require_finite(buffer[filled : filled + stop - start].copy_(numbers), numbers, number)
            filled, start = filled + stop - start, stop
            if filled == rows:
                yield buffer
                filled = 0
        del piece  # frees its memory before the source makes the next piece
        number += 1  # noqa: SIM113 - enumerate keeps a reference to a piece until the next one exists
    if filled:
        yield buffer[:filled]


def fresh_pieces(chunks: Chunks) -> Callable[[], Iterable[Piece]]:
    """A function whose every call starts a new iteration over the pieces; a PointsetError if that is not possible."""
    if isinstance(chunks, Iterator):
        raise PointsetError(
            f"the chunks are a {type(chunks).__name__}, which can be read once, but a cloud is read several times: "
            "give a function that makes a fresh one, as in model.stream(lambda: pieces(...))"
        )

    def pieces() -> Iterable[Piece]:
        given: Any = chunks() if callable(chunks) else chunks
        if isinstance(given, Tensor | np.ndarray):
            return (given,)
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise PointsetError(
                "chunks must be a function that makes an iterator over pieces [n, 3], a list of them, or "
                f"pointset.data.open_scan(path), got {type(given).__name__}"
            )
        return given

    if not callable(chunks):
        pieces()
    return pieces


def _check_piece(piece: Any, number: int, width: int) -> None:
    if not isinstance(piece, Tensor | np.ndarray):
        kind = type(piece).__name__
        raise PointsetError(f"piece {number} of the cloud is a {kind}: give tensors or arrays [n, {width}]")
    numbers = not piece.is_complex() if isinstance(piece, Tensor) else piece.dtype.kind in "fiu"
    if piece.ndim != 2 or piece.shape[1] != width or not numbers:
        found = f"{piece.dtype} {list(piece.shape)}"
        raise PointsetError(f"piece {number} of the cloud must be numbers [n, {width}], got {found}")


def _require_finite(held: Tensor, given: Tensor, number: int) -> None:
    """Raise a PointsetError if `given` is not finite, or overflows in the narrower type of `held`."""
    # The sum takes a thirtieth of the time of the full check, but it can overflow when all numbers are finite.
    if bool(held.sum().isfinite()) or bool(held.isfinite().all()):
        return
    if bool(given.isfinite().all()):
        fault = f"the number {float(given.abs().max()):.3g}, too large for {held.dtype}: scale it down"
        raise PointsetError(f"piece {number} of the cloud has {fault}, as normalize_chunks does")
    raise PointsetError(f"piece {number} of the cloud has a number that is not finite: leave the point out")
