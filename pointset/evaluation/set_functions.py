"""Calling any module with sets and, where it takes one, a mask."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.modes import in_evaluation_mode

BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class MaskArgument(Enum):
    """How a function is given its mask."""

    NONE = "not at all"
    NAMED = "f(X, mask=mask)"
    SECOND = "f(X, mask)"


class SetFunction:
    """A module or any other callable, called as `f(X [B, n, dim])`, or with a mask [B, n] too.

    Attributes:
        name: of the function, or of the module's class, for messages.
        mask: how it is given a mask; see `mask_argument`.
        owner: the module that has the mode, parameters and `inputs`: the module itself or, for a method, the one it
            is bound to; None for other functions.
    """

    def __init__(self, function: nn.Module | Callable[..., Tensor], mask: bool | None) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.mask = mask_argument(function, mask)
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        self.owner = owner if isinstance(owner, nn.Module) else None

    @property
    def inputs(self) -> int:
        """The width of its rows; 3 when it does not say."""
        return int(getattr(self.owner, "inputs", 3))

    def evaluating(self) -> AbstractContextManager[None]:
        """A block in evaluation mode, without dropout and batch statistics."""
        return nullcontext() if self.owner is None else in_evaluation_mode(self.owner)

    def random_sets(self, sets: int, size: int, dim: int, generator: torch.Generator) -> Tensor:
        """Rows [sets, size, dim] from N(0, 1), of the type and on the device of its parameters."""
        X = torch.randn(sets, size, dim, generator=generator)
        parameter = None if self.owner is None else next(self.owner.parameters(), None)
        return X if parameter is None else X.to(parameter)

    def __call__(self, X: Tensor, mask: Tensor) -> Tensor:
        """Its output for the sets; the mask is left out where it takes none.

        Raises:
            PointsetError: the call fails, or its output is not a tensor.
        """
        try:
            found = self._call(X, mask)
        except PointsetError:
            raise
        except Exception as error:
            raise PointsetError(self._why_not(X, mask, error)) from error
        if not isinstance(found, torch.Tensor):
            raise PointsetError(
                f"{self.name} must return a tensor, got {type(found).__name__}: wrap it in a module that returns one"
            )
        return found

    def _call(self, X: Tensor, mask: Tensor) -> object:
        if self.mask is MaskArgument.NONE:
            return self.function(X)
        return self.function(X, mask=mask) if self.mask is MaskArgument.NAMED else self.function(X, mask)

    def _why_not(self, X: Tensor, mask: Tensor, error: Exception) -> str:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        if self.mask is MaskArgument.NONE:
            given, remedy = "alone", "mask=True where it needs a mask (mask=False and None call it without)"
        else:
            given, remedy = f"and a mask {list(mask.shape)}", "mask=False where it takes no mask"
        return (
            f"{self.name} cannot be called with X {list(X.shape)} {given} ({reason}): give dim= the width of its rows, "
            f"or {remedy}"
        )


def mask_argument(function: nn.Module | Callable[..., Tensor], wanted: bool | None = None) -> MaskArgument:
    """How a function of X takes a mask, from its signature.

    Args:
        function: a module, whose `forward` is looked at, or another callable.
        wanted: False for not at all. When None, a mask goes to a parameter `mask`, or to a second positional one
            without a default; other parameters are options. When True, a mask is always given.
    """
    if wanted is False:
        return MaskArgument.NONE
    parameters = _parameters(function)
    others = parameters[1:]
    for parameter in others:
        if parameter.name == "mask" and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            return MaskArgument.NAMED
    second = others[0] if others and others[0].kind in BY_POSITION else None
    if second is not None and (second.name == "mask" or second.default is inspect.Parameter.empty):
        return MaskArgument.SECOND
    if not wanted:
        return MaskArgument.NONE
    takes_any = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    return MaskArgument.SECOND if second is not None or takes_any or not parameters else MaskArgument.NAMED


def _parameters(function: nn.Module | Callable[..., Tensor]) -> list[inspect.Parameter]:
    """Of the call, without `self`; none for a builtin, which has no signature."""
    try:
        found = list(inspect.signature(getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        return []
    # torch.compile, DataParallel and averages of weights pass everything on to the module in them.
    inner = getattr(function, "_orig_mod", getattr(function, "module", None))
    hidden = bool(found) and found[0].kind is inspect.Parameter.VAR_POSITIONAL
    return _parameters(inner) if hidden and callable(inner) else found
