"""Checks of the inputs of a block, made on entry so that the message names the argument and its shape."""

from typing import Any

import torch
from torch import Tensor

from pointset.errors import described
from pointset.inputs import InputError, is_mask, mask_error
from pointset.nn.fast.packing import Packed

LOWER = (torch.float32, torch.bfloat16, torch.float16)
"""Data types that mixed precision (autocast) converts automatically."""


def check_rows(X: Any, layout: Any, weight: Tensor, letter: str = "X") -> None:
    """Check rows and their mask, or `Packed`, against the first weight [..., width] that the rows are multiplied with.

    Raises:
        InputError: the rows, called by their letter, or the mask have a wrong shape or type; the message shows both.
    """
    check_layout(X, layout, letter, weight.shape[-1])
    if X.dtype != weight.dtype and not (X.dtype in LOWER and torch.is_autocast_enabled(X.device.type)):
        kind = str(weight.dtype).removeprefix("torch.")
        raise InputError(f"{letter} is {described(X)} and the block computes in {kind}: give {letter}.to(torch.{kind})")


def check_layout(X: Any, layout: Any, letter: str = "Z", width: int | None = None) -> None:
    """Raise an InputError unless the rows are [B, n, d] or packed [N, d], and the mask or `Packed` fits them."""
    packed = isinstance(layout, Packed)
    if not isinstance(X, Tensor) or X.dim() != (2 if packed else 3) or (width is not None and X.shape[-1] != width):
        d = "d" if width is None else width
        raise InputError(f"{letter} must be {'[N' if packed else '[B, n'}, {d}], got {described(X)}")
    if packed and layout.rows != len(X):
        raise InputError(f"{letter} has {len(X):,} rows, and the lengths of its packed sets add up to {layout.rows:,}")
    if not packed and layout is not None and not is_mask(layout, X):
        raise mask_error(layout, X)


def check_pair(X: Any, Y: Any, mask: Any, query_mask: Any, query: Tensor, key: Tensor) -> None:
    """Check the inputs of an attention against the weights that X and Y are multiplied with.

    Raises:
        InputError: rows or a mask have a wrong shape or type, or X and Y have different batch sizes (X may have 1).
    """
    check_rows(X, query_mask, query)
    check_rows(Y, mask, key, "Y")
    if X.dim() == Y.dim() == 3 and X.shape[0] != 1 and X.shape[0] != Y.shape[0]:
        raise InputError(f"X and Y must have the same number of sets, or X one, got {described(X)} and {described(Y)}")
