"""What a block can take: asked where it is entered, so that a wrong shape is told in its own words."""

from typing import Any

import torch
from torch import Tensor

from pointset.inputs import InputError, described, mask_error
from pointset.nn.fast.packing import Packed

LOWER = (torch.float32, torch.bfloat16, torch.float16)
"""What mixed precision converts by itself."""


def check_rows(X: Any, layout: Any, weight: Tensor, letter: str = "X") -> None:
    """Refuse rows that a weight cannot be multiplied with, and a mask of other rows.

    Args:
        X: [B, n, width], or [N, width] of packed sets.
        layout: the mask bool [B, n], or how sets are packed.
        weight: [..., width], the first that the rows meet.
        letter: what the rows are called.

    Raises:
        InputError: the rows have another shape or type, or the mask; the message shows both.
    """
    width = weight.shape[-1]
    packed = isinstance(layout, Packed)
    if not isinstance(X, Tensor) or X.dim() != (2 if packed else 3) or X.shape[-1] != width:
        raise InputError(f"{letter} must be {'[N' if packed else '[B, n'}, {width}], got {described(X)}")
    if X.dtype != weight.dtype and not (X.dtype in LOWER and torch.is_autocast_enabled(X.device.type)):
        wanted = str(weight.dtype).removeprefix("torch.")
        raise InputError(
            f"{letter} is {described(X)} and the block computes in {wanted}: give {letter}.to(torch.{wanted})"
        )
    check_mask(X, layout)


def check_mask(X: Tensor, layout: Any) -> None:
    """Refuse, with an InputError, a mask that is not bool [B, n] for rows [B, n, d]."""
    if layout is None or isinstance(layout, Packed):
        return
    if not isinstance(layout, Tensor) or layout.dtype != torch.bool or layout.shape != X.shape[:2]:
        raise mask_error(layout, X)


def check_sets(X: Tensor, Y: Tensor) -> None:
    """Refuse, with an InputError, batches of different sizes; X may have a batch of one that serves all of Y."""
    if X.dim() == Y.dim() == 3 and X.shape[0] != 1 and X.shape[0] != Y.shape[0]:
        raise InputError(f"X and Y must have as many sets, or X one, got {described(X)} and {described(Y)}")
