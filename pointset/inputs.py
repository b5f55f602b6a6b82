"""What a user gives to a function, told and checked in one way: one sentence with the types and the shapes."""

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
"""What a class is called in a message, and where one comes from."""


class InputError(PointsetError, ValueError):
    """A tensor, an array or another object that a function cannot take."""


def described(value: Any) -> str:
    """A value in a few words: "float32 [2, 5, 3]" of a tensor or an array, else its type."""
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or kind is None:
        return "None" if value is None else type(value).__name__
    return f"{str(kind).removeprefix('torch.')} {list(shape)}"


def takes(**kinds: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check arguments where a public function is entered: `@takes(model=nn.Module, batch_size=Count)`.

    Args:
        kinds: of each argument, see `check_kind`. Arguments that are not given are not checked.
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
    """Refuse, with a PointsetError that names it, a value of another kind.

    Args:
        name: of the argument.
        value: what was given.
        kind: a class, classes joined by |, a sequence of a class, or an annotated type of `pointset.configuration`.
    """
    if type(value) is kind:  # nearly always, and the rest takes longer
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
            raise InputError(f"{name} must be a list, each {_words(part)}, got {_told(value)}")
    elif not isinstance(kind, type | UnionType) or any(get_origin(part) is Annotated for part in parts):
        check(name, value, kind)
    elif not _is(value, kind):
        named = kind is nn.Module and isinstance(value, str)
        made = f": make it with pointset.create_model({quoted(value)})" if named else ""
        raise InputError(f"{name} must be {_words(kind)}, got {_told(value)}{made}")


def _is(value: Any, kind: Any) -> bool:
    """As isinstance, but numbers of numpy are whole numbers, and True is not one."""
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


def _told(value: Any) -> str:
    return quoted(value) if isinstance(value, str | int | float) else described(value)


def check_clouds(points: Any, mask: Any = None, *, features: bool = False) -> None:
    """Refuse, with the types and the shapes, what is not a floating batch [B, n, 3] of clouds, or not its mask.

    With `features`, a point may have more numbers behind its coordinates.
    """
    floating = isinstance(points, Tensor) and points.dim() == 3 and points.is_floating_point()
    if not floating or not (points.shape[2] == 3 or (features and points.shape[2] > 3)):
        alone = ": for one cloud give points[None]" if getattr(points, "ndim", 0) == 2 else ""
        raise InputError(f"points must be a floating tensor [B, n, 3], got {described(points)}{alone}")
    if mask is not None and not is_mask(mask, points):
        raise mask_error(mask, points)


def as_places(name: str, places: Any, count: int) -> Tensor:
    """Places in a list of `count` as int64 [k]; those below 0 count from its end.

    Raises:
        InputError: they are not whole numbers [k], or one is beyond the end; the message has the name.
    """
    try:
        found = torch.as_tensor(places)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{name} must be whole numbers [k], got {_told(places)}") from error
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if found.dim() != 1 or not (whole or not len(found)):
        raise InputError(f"{name} must be whole numbers [k], got {described(found)}")
    if len(found) and not (-count <= int(found.min()) and int(found.max()) < count):
        odd = next(place for place in found.tolist() if not -count <= place < count)
        raise InputError(f"{name} has {odd}, and there are {count:,}, counted from 0")
    return found.to(torch.int64)


def is_mask(mask: Any, points: Tensor) -> TypeGuard[Tensor]:
    """True for a mask bool [..., n] of points [..., n, d]."""
    return isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == points.shape[:-1]


def mask_error(mask: Any, points: Tensor) -> InputError:
    """The sentence for something else than a mask of points [..., n, d]."""
    return InputError(f"mask must be bool {list(points.shape[:-1])}, True at real points, got {described(mask)}")


def require_unmasked(values: Any) -> None:
    """Refuse, with an InputError, a masked array: as a plain one it would have what is masked for numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{described(values)} has masked entries, which have no value: leave those points out")


def as_numbers(values: np.ndarray) -> Tensor:
    """An array of any byte order and strides, perhaps read-only, as a tensor: float32 or, for more digits, float64."""
    require_unmasked(values)
    single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return torch.from_numpy(np.array(values, np.float32 if single else np.float64, order="C"))


def as_points(points: Any, width: int, like: Tensor | None, shape: str = "[B, n, {}]") -> Tensor:
    """Points as a tensor [..., width] of a model's type: arrays, whole numbers and other floating types are converted.

    Args:
        points: tensor or array; whole numbers must be exact in the model's type.
        width: numbers per point.
        like: a parameter of the model, for type and (of arrays) device; None keeps a floating type.
        shape: what is expected, for the message; {} is the width.

    Raises:
        InputError: they are something else; the message has their type and shape.
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
    """A mask of points, or None; arrays are converted.

    Raises:
        InputError: it is not bool [..., n], for points [..., n, d].
    """
    found = torch.from_numpy(mask.copy()).to(points.device) if _is_bool_array(mask) else mask
    if found is not None and not is_mask(found, points):
        raise mask_error(mask, points)
    return found


def _is_bool_array(mask: Any) -> bool:
    return isinstance(mask, np.ndarray) and mask.dtype == np.bool_
