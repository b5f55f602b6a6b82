"""Does a module treat its input as a set? Measured, not believed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointset.errors import PointsetError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

SETS = 3
"""In each batch that is tried."""
PADDING = 5
"""Rows of garbage that are added behind a mask."""


@dataclass(frozen=True)
class Symmetry:
    """The worst deviations found, as shares of the largest output."""

    kind: str
    """"invariant" when the output has no row per element, "equivariant" when it has."""
    permutation: float
    """Between f(P X) and f(X), or P f(X) for an equivariant module."""
    duplicates: float
    """The same for sets in which elements occur twice; for an equivariant module also between the rows of equals."""
    padding: float | None
    """Between a set and the same set with masked rows added; None when the module takes no mask."""
    repetition: float
    """Between a set and the set with each element twice. A property, not a fault, and no part of `worst`: maxima, means
    and attention do not see it, sums do."""

    @property
    def worst(self) -> float:
        """The largest of the deviations that a function of sets does not have."""
        return max(self.permutation, self.duplicates, self.padding or 0.0)


def check_symmetry(
    module: nn.Module,
    *,
    sizes: tuple[int, ...] = (1, 2, 7, 31),
    dim: int | None = None,
    seed: int = 0,
    mask: bool | None = None,
) -> Symmetry:
    """Test invariance or equivariance under permutations, with duplicates, and under padding, in evaluation mode.

    Args:
        module: called as `module(X [B, n, dim], mask [B, n])`. An output [B, n, .] is taken as equivariant, any other
            as invariant.
        sizes: set sizes to try; tell apart from every output size but the set's own.
        dim: width of the rows; the module's own `inputs`, or 3, when None.
        seed: of sets and permutations.
        mask: False for a module that is called with X alone; padding is then not tested. When None, a module whose
            `forward` takes no second argument is such a one.

    Returns:
        The worst deviations. For a correct module they are of the order of its rounding (float32: below 1e-4).

    Raises:
        PointsetError: no sizes, or sizes that are none; the module's output is no tensor.
    """
    import torch

    from pointset.nn.modes import in_evaluation_mode

    if not sizes or min(sizes) < 1:
        raise PointsetError(f"sizes={sizes} are no sizes of sets: give some from 1 on")
    dim = dim or int(getattr(module, "inputs", 3))
    masked = _takes_a_mask(module) if mask is None else mask
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad(), in_evaluation_mode(module):
        trials = [_Trial(module, size, dim, masked, generator) for size in sizes]
        equivariant = all(trial.has_rows for trial in trials)
        return Symmetry(
            "equivariant" if equivariant else "invariant",
            permutation=max(trial.permutation() for trial in trials),
            duplicates=max(trial.duplicates() for trial in trials),
            padding=max(trial.padding() for trial in trials) if masked else None,
            repetition=max(trial.repetition() for trial in trials),
        )


class _Trial:
    """One batch of sets of one size, and what the module makes of it."""

    def __init__(self, module: nn.Module, size: int, dim: int, masked: bool, generator: torch.Generator) -> None:
        self.module, self.size, self.masked, self.generator = module, size, masked, generator
        self.X = self._random(size, dim)
        self.result = self._run(self.X)
        self.has_rows = self.result.dim() == 3 and self.result.shape[1] == size

    def permutation(self) -> float:
        return self._moved(self.X, self.result)

    def duplicates(self) -> float:
        """The first element in place of every other one: rows with the same numbers, maxima that occur twice."""
        X = self.X.clone()
        X[:, ::2] = X[:, :1].clone()
        result = self._run(X)
        deviation = self._moved(X, result)
        if not self.has_rows:
            return deviation
        equals = result[:, ::2]
        return max(deviation, _deviation(equals, equals[:, :1].expand_as(equals)))

    def padding(self) -> float:
        import torch

        X = torch.cat([self.X, self._random(PADDING, self.X.shape[2])], dim=1)
        keep = torch.arange(X.shape[1], device=X.device).expand(X.shape[:2]) < self.size
        found = self._tensor(self.module(X, keep))
        return _deviation(found[:, : self.size] if self.has_rows else found, self.result)

    def repetition(self) -> float:
        found = self._run(self.X.repeat_interleave(2, dim=1))
        return _deviation(found[:, ::2] if self.has_rows else found, self.result)

    def _moved(self, X: Tensor, result: Tensor) -> float:
        import torch

        order = torch.randperm(self.size, generator=self.generator)
        return _deviation(self._run(X[:, order]), result[:, order] if self.has_rows else result)

    def _run(self, X: Tensor) -> Tensor:
        everything = X.new_ones(X.shape[:2]).bool()
        return self._tensor(self.module(X, everything) if self.masked else self.module(X))

    def _tensor(self, found: object) -> Tensor:
        import torch

        if not isinstance(found, torch.Tensor):
            name, kind = type(self.module).__name__, type(found).__name__
            raise PointsetError(f"{name} returns a {kind} and no tensor: wrap it in a module that returns the tensor")
        return found

    def _random(self, size: int, dim: int) -> Tensor:
        import torch

        X = torch.randn(SETS, size, dim, generator=self.generator)
        parameter = next(self.module.parameters(), None)
        return X if parameter is None else X.to(parameter)


def _takes_a_mask(module: nn.Module) -> bool:
    """Whether `forward` has a second argument by position."""
    forward: Callable[..., object] = module.forward
    kinds = [parameter.kind for parameter in inspect.signature(forward).parameters.values()]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Parameter.VAR_POSITIONAL in kinds or sum(kind in by_position for kind in kinds) > 1


def _deviation(found: Tensor, expected: Tensor) -> float:
    import torch

    if found.shape != expected.shape:
        raise PointsetError(
            f"an output of {list(found.shape)} stands where {list(expected.shape)} was: give sizes of sets that no "
            "other axis of the output has"
        )
    if not found.numel():
        return 0.0
    scale = expected.abs().max().clamp(min=torch.finfo(expected.dtype).tiny)
    return float((found - expected).abs().max() / scale)
