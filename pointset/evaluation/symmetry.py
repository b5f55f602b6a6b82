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
    function = _SetFunction(module, mask, torch.Generator().manual_seed(seed))
    dim = dim or int(getattr(function.owner, "inputs", 3))
    with torch.no_grad(), nullcontext() if function.owner is None else in_evaluation_mode(function.owner):
        sets = [function.draw(size, dim) for size in sizes]
        # Over all sizes: at a single one, two seeds look like two elements.
        function.equivariant = all(
            function(X).shape[:2] == X.shape[:2] and function(twice).shape[:2] == twice.shape[:2]
            for X, twice in ((X, X.repeat_interleave(2, dim=1)) for X in sets)
        )
        return Symmetry(
            "equivariant" if function.equivariant else "invariant",
            permutation=max(map(function.permutation, sets)),
            duplicates=max(map(function.duplicates, sets)),
            padding=max(function.padding(X, garbage) for X in sets for garbage in GARBAGE) if mask else None,
        )


class _SetFunction:
    """A module or any other callable of X [B, n, dim], and of a mask [B, n] if it takes one."""

    equivariant = False

    def __init__(self, function: nn.Module | Callable[..., Tensor], mask: bool, generator: torch.Generator) -> None:
        self.function, self.mask, self.generator = function, mask, generator
        self.name = str(getattr(function, "__name__", type(function).__name__))
        # The module that has the mode, parameters and `inputs`: of a method, the one that it is bound to.
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        self.owner = owner if isinstance(owner, nn.Module) else None

    def draw(self, size: int, dim: int) -> Tensor:
        """Rows [SETS, size, dim] from N(0, 1), of the type and on the device of its parameters."""
        X = torch.randn(SETS, size, dim, generator=self.generator)
        parameter = None if self.owner is None else next(self.owner.parameters(), None)
        return X if parameter is None else X.to(parameter)

    def permutation(self, X: Tensor) -> float:
        result = self(X)
        return max(
            _deviation(self(X[EACH_SET, order]), self._at(order, result))
            for order in _orders(X.shape[1], self.generator)
        )

    def duplicates(self, X: Tensor) -> float:
        """With every other element replaced by the first one."""
        X = X.clone()
        X[:, ::2] = X[:, :1].clone()
        deviation, equals = self.permutation(X), self(X)[:, ::2] if self.equivariant else None
        return deviation if equals is None else max(deviation, _deviation(equals, equals[:, :1].expand_as(equals)))

    def padding(self, X: Tensor, garbage: float) -> float:
        """With masked rows, which are `garbage` times N(0, 1)."""
        places = _places(X.shape[1], self.generator)
        padded = garbage * self.draw(X.shape[1] + PADDING, X.shape[2])
        padded[EACH_SET, places] = X
        mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
        mask[EACH_SET, places] = True
        return _deviation(self._at(places, self(padded, mask.to(X.device))), self(X))

    def _at(self, places: Tensor, result: Tensor) -> Tensor:
        """The rows of an equivariant function for the elements at places [B, m]; the whole result if invariant."""
        return result[EACH_SET, places] if self.equivariant else result

    def __call__(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        mask = X.new_ones(X.shape[:2]).bool() if mask is None else mask
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
        if self.equivariant and output.shape[:2] != X.shape[:2]:
            raise PointsetError(f"{self.name} returns {list(output.shape)} for X {list(X.shape)}: {ROWS_NEEDED}")
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
