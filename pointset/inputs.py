"""Conversion of users' points, masks and indices to tensors. Errors name the expected and actual types and shapes."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.errors import PointsetError, described, quoted


class InputError(PointsetError, ValueError):
    """An argument has the wrong type, shape or value."""


def require_model(model: Any) -> None:
    """Raise an InputError unless `model` is a torch module. The name of a model is not enough."""
    if not isinstance(model, nn.Module):
        hint = f": make it with pointset.create_model({quoted(model)})" if isinstance(model, str) else ""
        hint = ": give its attribute model_" if hasattr(model, "model_") else hint
        raise InputError(f"model must be a torch module, got {described(model)}{hint}")


def require_tensor(output: Any, model: nn.Module) -> Tensor:
    """Return the output of a model if it is one tensor, and raise an InputError otherwise."""
    if not isinstance(output, Tensor):
        raise InputError(f"{type(model).__name__} must return a tensor, got {described(output)}")
    return output


def call_model(model: nn.Module, points: Tensor, mask: Tensor | None) -> Tensor:
    """Return the output of a model for sets. If its `forward` takes no mask, the sets must have no padding.

    Raises:
        InputError: `forward` takes no mask but the sets have padding, or the output is not one tensor.
    """
    try:
        inspect.signature(model.forward).bind(points, mask)
    except TypeError:
        if mask is not None and not bool(mask.all()):
            name = type(model).__name__
            raise InputError(f"{name}.forward must take (points, mask): these sets have padded points") from None
        return require_tensor(model(points), model)
    return require_tensor(model(points, mask), model)


def check_clouds(points: Any, mask: Any = None, *, features: bool = False) -> None:
    """Raise an InputError unless points are a floating-point tensor [B, n, 3] and a mask, if there is one, fits them.

    With `features`, points [B, n, d] with d > 3 are also allowed.
    """
    require_rows("points", points, 3, more=features)
    as_mask(mask, points)


def require_rows(name: str, rows: Any, width: int | None, *, more: bool = False) -> None:
    """Raise an InputError unless rows are floats [B, n, width]. None allows any width, `more` also larger widths."""
    floating = isinstance(rows, Tensor) and rows.dim() == 3 and rows.is_floating_point()
    if not floating or not (width in (None, rows.shape[2]) or (more and rows.shape[2] > width)):
        hint = f": for one cloud give {name}[None]" if getattr(rows, "ndim", 0) == 2 else ""
        hint = f" of numpy: give torch.from_numpy({name})" if isinstance(rows, np.ndarray) else hint
        raise InputError(f"{name} must be a floating tensor [B, n, {width or 'd'}], got {described(rows)}{hint}")


def as_places(name: str, places: Any, count: int) -> Tensor:
    """Convert indices of a list with `count` entries to int64 [k]. Negative indices count from the end.

    Raises:
        InputError: the indices are not whole numbers [k], or one is out of range. The message contains `name`.
    """
    indices = torch.as_tensor(places)
    whole = not (indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool)
    if indices.dim() != 1 or not (whole or not len(indices)):
        raise InputError(f"{name} must be whole numbers [k], got {described(indices)}")
    outside = indices[(indices < -count) | (indices >= count)]
    if len(outside):
        raise InputError(f"{name} has the index {int(outside[0])}, which is out of range for {count:,} entries")
    return indices.to(torch.int64)


def require_unmasked(values: Any) -> None:
    """Raise an InputError for an array with masked entries, which a conversion would treat as numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{described(values)} has masked entries, which have no value: leave those points out")


def as_numbers(values: np.ndarray) -> Tensor:
    """Copy an array of any byte order and strides to a tensor. float16 and float32 give float32, others float64."""
    require_unmasked(values)
    single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return torch.from_numpy(np.array(values, np.float32 if single else np.float64, order="C"))


def as_points(points: Any, width: int | Sequence[int], like: Tensor | None, shape: str = "[B, n, {}]") -> Tensor:
    """Convert points to a tensor [..., width] of a model's type.

    Args:
        points: tensor or array of any real type. The model's type must represent integers of a tensor exactly.
        width: allowed number of values per point, or several such numbers, the usual one first.
        like: parameter of the model. The result has its type and, for arrays, also its device. None keeps float types.
        shape: expected shape for the message, in which {} is replaced by the width.

    Raises:
        InputError: the points have an unsupported type or shape, which the message contains.
    """
    wanted = torch.get_default_dtype() if like is None else like.dtype
    widths = (width,) if isinstance(width, int) else tuple(width)
    given = points
    if isinstance(points, np.ndarray) and points.dtype.kind in "fiu":
        points = as_numbers(points).to(None if like is None else like.device)
    real = isinstance(points, Tensor) and not points.is_complex() and points.dtype != torch.bool
    if not real or points.dim() == 0 or points.shape[-1] not in widths:
        hint = "" if real else ": give a tensor or an array of real numbers"
        if real and points.dim() > 1 and points.shape[-2] in widths:
            hint = ": they look transposed, give points.T of one cloud, or swap the last two axes of a batch"
        raise InputError(f"points must be {shape.format(widths[0])}, got {described(given)}{hint}")
    if points.is_floating_point():
        return points if like is None else points.to(wanted)
    converted = points.to(wanted)
    if not torch.equal(converted.to(points.dtype), points):
        raise InputError(
            f"points are {described(given)}, and some are too large for "
            f"{str(wanted).removeprefix('torch.')}: scale them"
        )
    return converted


def as_sets(points: Any, mask: Any, width: int | Sequence[int], like: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Convert points [B, n, width], or one cloud [n, width], and their mask to tensors with a batch axis.

    Raises:
        InputError: the points or the mask have an unsupported type or shape; see `as_points`.
    """
    sets = as_points(points, width, like)
    if sets.dim() not in (2, 3):
        usual = width if isinstance(width, int) else width[0]
        raise InputError(f"points must be [B, n, {usual}] or, of one cloud, [n, {usual}], got {described(points)}")
    mask = as_mask(mask, sets)
    if sets.dim() == 2:
        return sets[None], None if mask is None else mask[None]
    return sets, mask


def as_mask(mask: Any, points: Tensor) -> Tensor | None:
    """Convert a mask, bool [..., n], of points [..., n, d] to a tensor, or raise an InputError. None stays None."""
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = torch.from_numpy(mask.copy()).to(points.device)
    if mask is not None:
        require_mask(mask, points)
    return mask


def require_mask(mask: Any, points: Tensor) -> None:
    """Raise an InputError unless a mask is a bool tensor [..., n] for points [..., n, d]."""
    if not (isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == points.shape[:-1]):
        raise InputError(f"mask must be bool {list(points.shape[:-1])}, True at real points, got {described(mask)}")
