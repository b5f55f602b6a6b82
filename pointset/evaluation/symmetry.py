"""Measure how far a module treats its input as a set: invariance, equivariance and masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.layers import in_evaluation_mode

SETS = 3
"""In each batch."""
MIXED_ORDERS = 2
"""Random orders of each set, in addition to a rotation, which moves every row."""
PADDING = 5
"""Masked rows added to each set."""
EACH_SET = torch.arange(SETS)[:, None]
"""Indices [B, 1] of the sets, to go with places [B, m]."""
ROWS_NEEDED = (
    "its output must have one row for each element, in axis 1, or a shape that does not depend on the set's size"
)
GARBAGE = (1.0, 1e4, math.nan)
"""Factors of the masked rows, which are from N(0, 1): like the elements, far larger, and NaN."""


@dataclass(frozen=True)
class Symmetry:
    """The largest deviations found, relative to the largest output; inf where an output is not finite."""

    kind: str
    """"invariant" when the output has no row per element, "equivariant" when it has."""
    permutation: float
    """Between f(P X) and f(X), or P f(X) for an equivariant module."""
    duplicates: float
    """The same for sets in which elements occur twice; for an equivariant module also between the rows of equals."""
    padding: float | None
    """Between a set and the same set with masked rows at its end or among its elements, of small, large and NaN values.
    None when the module takes no mask."""

    def __repr__(self) -> str:
        """What was found, in a line."""
        padding = "no mask" if self.padding is None else f"padding {self.padding:.0e}"
        return (
            f"Symmetry ({self.kind}): permutation {self.permutation:.0e}, duplicates {self.duplicates:.0e}, {padding}"
        )

    @property
    def worst(self) -> float:
        """The largest deviation that a function of sets must not have."""
        return max(self.permutation, self.duplicates, self.padding or 0.0)


def check_symmetry(
    module: nn.Module | Callable[..., Tensor],
    *,
    sizes: tuple[int, ...] = (1, 2, 7, 31),
    dim: int | None = None,
    seed: int = 0,
    mask: bool = True,
) -> Symmetry:
    """Test invariance or equivariance under permutations, with duplicates, and under padding, in evaluation mode.

    Args:
        module: called as `module(X [B, n, dim], mask [B, n])`, a module or any other function. An output [B, n, ...]
            whose n is the set's own at every size is taken as equivariant, any other as invariant.
        sizes: set sizes to try.
        dim: width of the rows; the module's own `inputs`, or 3, when None.
        seed: of sets and permutations.
        mask: False calls the module with X alone, and does not test padding.

    Returns:
        The largest deviations; those of a correct module are of the order of rounding (float32: below 1e-4).

    Raises:
        PointsetError: sizes are empty or below 1; the module cannot be called as above; its output is not a tensor, or
            its shape depends on the set in another way than by one row per element.

    Example:
        >>> pointset.check_symmetry(model).worst < 1e-4
        True
        >>> pointset.check_symmetry(lambda X: X[:, 0], mask=False).worst > 0.1  # the first row: order matters
        True
    """
    if not sizes or min(sizes) < 1:
        raise PointsetError(f"sizes must be one or more numbers of at least 1, got {sizes}")
    function = _SetFunction(module, mask)
    dim = dim or int(getattr(function.owner, "inputs", 3))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad(), nullcontext() if function.owner is None else in_evaluation_mode(function.owner):
        trials = [_Trial(function, size, dim, generator) for size in sizes]
        equivariant = all(trial.has_rows for trial in trials)
        for trial in trials:
            trial.equivariant = equivariant
        return Symmetry(
            "equivariant" if equivariant else "invariant",
            permutation=max(trial.permutation() for trial in trials),
            duplicates=max(trial.duplicates() for trial in trials),
            padding=None if not mask else max(trial.padding() for trial in trials),
        )


class _SetFunction:
    """A module or any other callable of X [B, n, dim], and of a mask [B, n] if it takes one."""

    def __init__(self, function: nn.Module | Callable[..., Tensor], mask: bool) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.mask = mask
        # The module that has the mode, parameters and `inputs`: of a method, the one that it is bound to.
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        self.owner = owner if isinstance(owner, nn.Module) else None

    def random_sets(self, size: int, dim: int, generator: torch.Generator) -> Tensor:
        """Rows [SETS, size, dim] from N(0, 1), of the type and on the device of its parameters."""
        X = torch.randn(SETS, size, dim, generator=generator)
        parameter = None if self.owner is None else next(self.owner.parameters(), None)
        return X if parameter is None else X.to(parameter)

    def __call__(self, X: Tensor, mask: Tensor) -> Tensor:
        try:
            output = self.function(X, mask) if self.mask else self.function(X)
        except PointsetError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            given = f"and a mask {list(mask.shape)}" if self.mask else "alone"
            raise PointsetError(
                f"{self.name} cannot be called with X {list(X.shape)} {given} ({reason}): give dim= the width of its "
                "rows, or mask=False if it takes none"
            ) from error
        if not isinstance(output, Tensor):
            raise PointsetError(f"{self.name} must return a tensor, got {type(output).__name__}")
        return output


class _Trial:
    """One batch of sets of one size, and what the function makes of it."""

    equivariant = False
    """Decided over all sizes: at a single size, two seeds look like two elements."""

    def __init__(self, function: _SetFunction, size: int, dim: int, generator: torch.Generator) -> None:
        self.function, self.size, self.generator = function, size, generator
        self.X = function.random_sets(size, dim, generator)
        self.result = self._run(self.X)
        twice = self._run(self.X.repeat_interleave(2, dim=1))
        self.has_rows = self.result.shape[:2] == (SETS, size) and twice.shape[:2] == (SETS, 2 * size)

    def permutation(self) -> float:
        return self._moved(self.X, self.result)

    def duplicates(self) -> float:
        """With every other element replaced by the first one."""
        X = self.X.clone()
        X[:, ::2] = X[:, :1].clone()
        result = self._run(X)
        deviation = self._moved(X, result)
        if not self.equivariant:
            return deviation
        equals = result[:, ::2]
        return max(deviation, _deviation(equals, equals[:, :1].expand_as(equals)))

    def padding(self) -> float:
        return max(self._padded(garbage) for garbage in GARBAGE)

    def _padded(self, garbage: float) -> float:
        places = _places(self.size, self.generator)
        X = garbage * self.function.random_sets(self.size + PADDING, self.X.shape[2], self.generator)
        X[EACH_SET, places] = self.X
        mask = torch.zeros(X.shape[:2], dtype=torch.bool)
        mask[EACH_SET, places] = True
        return _deviation(self._at(places, self._run(X, mask.to(X.device))), self.result)

    def _moved(self, X: Tensor, result: Tensor) -> float:
        orders = _orders(self.size, self.generator)
        return max(_deviation(self._run(X[EACH_SET, order]), self._at(order, result)) for order in orders)

    def _at(self, places: Tensor, result: Tensor) -> Tensor:
        """The rows of an equivariant function for the elements at places [B, m]; the whole result if invariant."""
        return result[EACH_SET, places] if self.equivariant else result

    def _run(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        output = self.function(X, X.new_ones(X.shape[:2]).bool() if mask is None else mask)
        if self.equivariant and output.shape[:2] != X.shape[:2]:
            raise PointsetError(
                f"{self.function.name} returns {list(output.shape)} for X {list(X.shape)}: {ROWS_NEEDED}"
            )
        return output


def _orders(size: int, generator: torch.Generator) -> list[Tensor]:
    """Orders [B, n] to try, different for each set: a rotation, which moves every row, and mixed ones."""
    shifts = torch.randint(1, max(size, 2), (SETS, 1), generator=generator)
    rotation = (torch.arange(size) + shifts) % size
    mixed = [torch.rand(SETS, size, generator=generator).argsort(dim=1) for _ in range(MIXED_ORDERS * (size > 2))]
    return [rotation, *mixed]


def _places(size: int, generator: torch.Generator) -> Tensor:
    """Places [B, n] of the elements among padding, in order: at the front in the first set, mixed in the others."""
    draws = torch.rand(SETS, size + PADDING, generator=generator)
    draws[0] = torch.arange(size + PADDING)
    draws[1:, 0] = torch.inf
    return draws.argsort(dim=1)[:, :size].sort(dim=1).values


def _deviation(output: Tensor, expected: Tensor) -> float:
    if output.shape != expected.shape:
        raise PointsetError(
            f"the output changed its shape from {list(expected.shape)} to {list(output.shape)}: {ROWS_NEEDED}"
        )
    if not output.numel():
        return 0.0
    exact = torch.promote_types(output.dtype, torch.float64)  # differences of integers and half floats overflow
    output, expected = output.to("cpu", exact), expected.to("cpu", exact)
    if not (output.isfinite().all() and expected.isfinite().all()):
        return math.inf  # max() would pass over a NaN
    scale = expected.abs().max().clamp(min=torch.finfo(exact).tiny)
    return float((output - expected).abs().max() / scale)
