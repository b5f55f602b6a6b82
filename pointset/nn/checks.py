"""Checks of the inputs of a block, made on entry so that the message names the argument and its shape."""

from typing import Any

import torch
from torch import Tensor

from pointset.errors import described
from pointset.inputs import InputError, is_mask, mask_error

LOWER = (torch.float32, torch.bfloat16, torch.float16)
"""Data types that mixed precision (autocast) converts automatically."""


def check_rows(X: Any, mask: Any, weight: Tensor, letter: str = "X") -> None:
    """Check rows and their mask against the first weight [..., width] that the rows are multiplied with.

    Raises:
        InputError: the rows, called by their letter, or the mask have a wrong shape or type; the message shows both.
    """
    check_mask(X, mask, letter, weight.shape[-1])
    if X.dtype != weight.dtype and not (X.dtype in LOWER and torch.is_autocast_enabled(X.device.type)):
        kind = str(weight.dtype).removeprefix("torch.")
        raise InputError(f"{letter} is {described(X)} and the block computes in {kind}: give {letter}.to(torch.{kind})")


def check_mask(X: Any, mask: Any, letter: str = "Z", width: int | None = None) -> None:
    """Raise an InputError unless the rows are [B, n, d], and the mask fits them."""
    if not isinstance(X, Tensor) or X.dim() != 3 or (width is not None and X.shape[-1] != width):
        raise InputError(f"{letter} must be [B, n, {'d' if width is None else width}], got {described(X)}")
    if mask is not None and not is_mask(mask, X):
        raise mask_error(mask, X)


def check_pair(X: Any, Y: Any, mask: Any, query_mask: Any, query: Tensor, key: Tensor) -> None:
    """Check the inputs of an attention against the weights that X and Y are multiplied with.

    Raises:
        InputError: rows or a mask have a wrong shape or type, or X and Y have different batch sizes (X may have 1).
    """
    check_rows(X, query_mask, query)
    check_rows(Y, mask, key, "Y")
    if X.shape[0] != 1 and X.shape[0] != Y.shape[0]:
        raise InputError(f"X and Y must have the same number of sets, or X one, got {described(X)} and {described(Y)}")
