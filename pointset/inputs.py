"""What a user gives to a function, told and checked in one way: one sentence with the types and the shapes."""

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError, quoted


class InputError(PointsetError, ValueError):
    """A tensor, an array or another object that a function cannot take."""


def described(value: Any) -> str:
    """A value in a few words: "float32 [2, 5, 3]" of a tensor or an array, else its type."""
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or kind is None:
        return f"{type(value).__name__}" if value is not None else "None"
    return f"{str(kind).removeprefix('torch.')} {list(shape)}"


def check_module(model: Any, name: str = "model") -> None:
    """Refuse, with an InputError, what is no torch module, such as a model's name."""
    if not isinstance(model, nn.Module):
        made = f": make it with pointset.create_model({quoted(model)})" if isinstance(model, str) else ""
        raise InputError(
            f"{name} must be a torch module, as pointset.create_model makes one, got {described(model)}{made}"
        )


def is_mask(mask: Any, points: Tensor) -> TypeGuard[Tensor]:
    """True for a mask bool [B, n] of points [B, n, d]."""
    return isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == points.shape[:2]


def mask_error(mask: Any, points: Tensor) -> InputError:
    """The sentence for what is no mask of points [B, n, d]."""
    return InputError(f"mask must be bool {list(points.shape[:2])}, True at real points, got {described(mask)}")
