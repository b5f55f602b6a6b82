"""Check arguments of public functions; errors are one sentence with the expected and the given types and shapes."""

import functools
import inspect
import numbers
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeGuard, TypeVar, get_args, get_origin

import numpy as np
import torch
from torch import Tensor, nn

from pointset.configuration import check
from pointset.errors import PointsetError, quoted

P = ParamSpec("P")
R = TypeVar("R")
WORDS = {
    "Module": "a torch module, as create_model makes one",
    "PointSets": "sets, as load_dataset loads them",
    "AttentionMap": "an attention map, as attention_maps gives them",
    "DrawnMap": "an attention map, as attention_maps gives them",
    "Mesh": "a mesh, as read_mesh reads one",
    "Path": "a path",
    "Callable": "a function",
    "Mapping": "a table from names",
    "Sequence": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
}
"""Description of a class in a message, with the function that makes one."""


class InputError(PointsetError, ValueError):
    """An argument has the wrong type, shape or value."""


def described(value: Any) -> str:
    """Describe a value: "float32 [2, 5, 3]" for a tensor or an array, otherwise its type."""
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or kind is None:
        return "None" if value is None else type(value).__name__
    return f"{str(kind).removeprefix('torch.')} {list(shape)}"


def takes(**kinds: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function to check its arguments: `@takes(model=nn.Module, batch_size=Count)`.

    Args:
        kinds: the kind of each argument, see `check_kind`. Omitted arguments are not checked.
    """

    def entered(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            given = signature.bind(*args, **options).arguments
            for name, kind in kinds.items():
                if name in given:
                    check_kind(name, given[name], kind)
            return function(*args, **options)

        return checked

    return entered


def check_kind(name: str, value: Any, kind: Any) -> None:
    """Raise a PointsetError unless a value is of a kind.

    Args:
        name: name of the argument, for the message.
        value: its value.
        kind: a class, classes joined by |, a sequence of a class, or an annotated type of `pointset.configuration`.
    """
    if type(value) is kind:  # the fast path, which is nearly always taken
        return
    parts = get_args(kind)
    if value is None and NoneType in parts:
        return
    if get_origin(kind) is not Sequence:
        kind = next((part for part in parts if get_origin(part) is Sequence), kind)
    if get_origin(kind) is Sequence:
        (part,) = get_args(kind)
        listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        if not listed or not all(type(one) is part or _is(one, part) for one in value):
            raise InputError(f"{name} must be a list, each {_words(part)}, got {_shown(value)}")
    elif not isinstance(kind, type | UnionType) or any(get_origin(part) is Annotated for part in parts):
        check(name, value, kind)
    elif not _is(value, kind):
        named = kind is nn.Module and isinstance(value, str)
        made = f": make it with pointset.create_model({quoted(value)})" if named else ""
        raise InputError(f"{name} must be {_words(kind)}, got {_shown(value)}{made}")


def _is(value: Any, kind: Any) -> bool:
    """As isinstance, but numpy integers are ints, and booleans are not."""
    if isinstance(value, bool | numbers.Integral) and kind not in (bool, float):
        return not isinstance(value, bool) and (kind is int or int in get_args(kind))
    return isinstance(value, numbers.Real if kind is float else kind)


def _words(kind: Any) -> str:
    parts = list(get_args(kind)) or [kind]
    if {str, Path} <= set(parts):
        parts = [part for part in parts if part is not str]
    return " or ".join(
        "None" if part is NoneType else WORDS.get(part.__name__, f"of type {part.__name__}") for part in parts
    )


def _shown(value: Any) -> str:
    return quoted(value) if isinstance(value, str | int | float) else described(value)


def check_clouds(points: Any, mask: Any = None, *, features: bool = False) -> None:
    """Raise an InputError unless points are a floating tensor [B, n, 3], and the mask, if any, fits them.

    With `features`, points [B, n, d] with d above 3 are allowed too.
    """
    floating = isinstance(points, Tensor) and points.dim() == 3 and points.is_floating_point()
    if not floating or not (points.shape[2] == 3 or (features and points.shape[2] > 3)):
        alone = ": for one cloud give points[None]" if getattr(points, "ndim", 0) == 2 else ""
        raise InputError(f"points must be a floating tensor [B, n, 3], got {described(points)}{alone}")
    if mask is not None and not is_mask(mask, points):
        raise mask_error(mask, points)


def as_places(name: str, places: Any, count: int) -> Tensor:
    """Convert indices into a list of `count` entries to int64 [k]; negative ones count from the end.

    Raises:
        InputError: they are not whole numbers [k], or one is out of range; the message has the name.
    """
    try:
        found = torch.as_tensor(places)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{name} must be whole numbers [k], got {_shown(places)}") from error
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if found.dim() != 1 or not (whole or not len(found)):
        raise InputError(f"{name} must be whole numbers [k], got {described(found)}")
    if len(found) and not (-count <= int(found.min()) and int(found.max()) < count):
        odd = next(place for place in found.tolist() if not -count <= place < count)
        raise InputError(f"{name} has {odd}, and there are {count:,}, counted from 0")
    return found.to(torch.int64)


def is_mask(mask: Any, points: Tensor) -> TypeGuard[Tensor]:
    """True if `mask` is a bool tensor [..., n] for points [..., n, d]."""
    return isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == points.shape[:-1]


def mask_error(mask: Any, points: Tensor) -> InputError:
    """The error for a value that is not a mask of points [..., n, d]."""
    return InputError(f"mask must be bool {list(points.shape[:-1])}, True at real points, got {described(mask)}")


def require_unmasked(values: Any) -> None:
    """Raise an InputError for an array with masked entries, which a conversion would turn into numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{described(values)} has masked entries, which have no value: leave those points out")


def as_numbers(values: np.ndarray) -> Tensor:
    """Copy an array of any byte order and strides to a tensor: float32, or float64 for types with more digits."""
    require_unmasked(values)
    single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return torch.from_numpy(np.array(values, np.float32 if single else np.float64, order="C"))


def as_points(points: Any, width: int, like: Tensor | None, shape: str = "[B, n, {}]") -> Tensor:
    """Convert points to a tensor [..., width] of a model's type.

    Args:
        points: tensor or array of any real type; integers must be exact in the model's type.
        width: numbers per point.
        like: a parameter of the model, whose type is used, and for arrays its device; None keeps a floating type.
        shape: the expected shape for the message; {} is replaced by the width.

    Raises:
        InputError: the points are not such numbers; the message has their type and shape.
    """
    expected = shape.format(width)
    if not isinstance(points, Tensor | np.ndarray):
        hint = ": torch.tensor(points) makes a tensor of numbers" if isinstance(points, list | tuple) else ""
        raise InputError(f"points must be a tensor or an array {expected}, got {described(points)}{hint}")
    told = described(points)
    if isinstance(points, np.ndarray):
        if points.dtype.kind not in "fiu":
            raise InputError(f"points must be real numbers {expected}, got {told}")
        points = as_numbers(points)
        points = points if like is None else points.to(like.device)
    if points.is_complex() or points.dtype == torch.bool:
        raise InputError(f"points must be real numbers {expected}, got {told}")
    if points.dim() == 0 or points.shape[-1] != width:
        raise InputError(f"points must be {expected}, got {told}")
    wanted = torch.get_default_dtype() if like is None else like.dtype
    if points.is_floating_point():
        return points if like is None else points.to(wanted)
    converted = points.to(wanted)
    if not torch.equal(converted.to(points.dtype), points):
        raise InputError(
            f"points are {told}, and some are too large for {str(wanted).removeprefix('torch.')}: scale them"
        )
    return converted


def as_mask(mask: Any, points: Tensor) -> Tensor | None:
    """Convert a mask of points to a tensor; None stays None.

    Raises:
        InputError: it is not bool [..., n], for points [..., n, d].
    """
    found = torch.from_numpy(mask.copy()).to(points.device) if _is_bool_array(mask) else mask
    if found is not None and not is_mask(found, points):
        raise mask_error(mask, points)
    return found


def _is_bool_array(mask: Any) -> bool:
    return isinstance(mask, np.ndarray) and mask.dtype == np.bool_
