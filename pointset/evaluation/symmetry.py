"""Measure whether a module treats its input as a set: invariance, equivariance and masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pointset.errors import REPEATED, PointsetError, one_line
from pointset.nn.layers import in_evaluation_mode

SETS = 3
"""Number of sets in each batch."""
MIXED_ORDERS = 2
"""Number of random orders of each set, in addition to a cyclic shift, which moves every row."""
PADDING = 5
"""Number of masked rows added to each set."""
EACH_SET = torch.arange(SETS)[:, None]
"""Indices [B, 1] of the sets, for indexing with places [B, m]."""
ROWS_NEEDED = (
    "its output must have one row for each element, in axis 1, or a shape that does not depend on the set's size"
)
GARBAGE = (1.0, 1e4, math.nan)
"""Factors of the masked rows, which are drawn from N(0, 1). The rows become like the elements, far larger, or NaN."""


@dataclass(frozen=True)
class Symmetry:
    """The largest deviations, relative to the largest output. Deviations are inf if an output is not finite."""

    kind: str
    """"equivariant" if the output has one row for each element, otherwise "invariant"."""
    permutation: float
    """Deviation of f(P X) from f(X), or from P f(X) for an equivariant module."""
    duplicates: float
    """The same deviation for sets with a repeated element. For an equivariant module, it includes differences between
    rows of equal elements."""
    padding: float | None
    """Deviation between a set and the same set with masked rows at the end or among the elements, with small, large and
    NaN values. None if the module takes no mask."""

    def __repr__(self) -> str:
        """Return kind and deviations in one line."""
        padding = "no mask" if self.padding is None else f"padding {self.padding:.0e}"
        return (
            f"Symmetry ({self.kind}): permutation {self.permutation:.0e}, duplicates {self.duplicates:.0e}, {padding}"
        )

    @property
    def worst(self) -> float:
        """The largest of the three deviations."""
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
        module: a module or another function, called as `module(X [B, n, dim], mask [B, n])`. If the output is [B, n,
            ...] at every size, equivariance is tested, otherwise invariance.
        sizes: set sizes to try.
        dim: number of coordinates of an element; default: `module.inputs`, or 3.
        seed: seed of sets and permutations.
        mask: if False, the module is called with X alone, and padding is not tested.

    Returns:
        The largest deviations. Those of a correct module are of the order of rounding (float32: below 1e-4).

    Raises:
        PointsetError: if `sizes` is empty, or a size is below 1; if the module cannot be called as above; if the output
            is not a tensor; if the output has neither one row per element nor the same shape for all sets.

    Example:
        >>> pointset.check_symmetry(model).worst < 1e-4
        True
        >>> pointset.check_symmetry(lambda X: X[:, 0], mask=False).worst > 0.1  # the first row: order matters
        True
    """
    if not sizes or min(sizes) < 1:
        raise PointsetError(f"sizes must be one or more numbers of at least 1, got {sizes}")
    # The module with the mode, parameters and `inputs`: for a method, the module that it is bound to.
    owner = module if isinstance(module, nn.Module) else getattr(module, "__self__", None)
    owner = owner if isinstance(owner, nn.Module) else None
    dim = dim or int(getattr(owner, "inputs", 3))
    with torch.no_grad(), in_evaluation_mode(owner) if owner else nullcontext():
        check = _Check(module, mask, next(owner.parameters(), torch.empty(0)) if owner else torch.empty(0), seed)
        sets = [check.draw(size, dim) for size in sizes]
        # All sizes are tried: at one size, the outputs of two seed vectors look like those of two elements.
        check.equivariant = all(
            check.call(X).shape[:2] == X.shape[:2] and check.call(twice).shape[:2] == twice.shape[:2]
            for X, twice in ((X, X.repeat_interleave(2, dim=1)) for X in sets)
        )
        return Symmetry(
            "equivariant" if check.equivariant else "invariant",
            permutation=max(map(check.permutation, sets)),
            duplicates=max(map(check.duplicates, sets)),
            padding=max(check.padding(X, garbage) for X in sets for garbage in GARBAGE) if mask else None,
        )


class _Check:
    """The deviations of a function that takes X [B, n, dim] and, if `mask` is True, a mask [B, n]."""

    equivariant = False

    def __init__(self, function: Callable[..., Tensor], mask: bool, like: Tensor, seed: int) -> None:
        self.function, self.mask, self.like = function, mask, like
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, size: int, dim: int) -> Tensor:
        """Draw rows [SETS, size, dim] from N(0, 1), of the type and on the device of the function's parameters."""
        return torch.randn(SETS, size, dim, generator=self.generator).to(self.like)

    def permutation(self, X: Tensor) -> float:
        """Return the deviation in other orders: a cyclic shift and random orders, different for each set."""
        size, result = X.shape[1], self.call(X)
        shifts = torch.randint(1, max(size, 2), (SETS, 1), generator=self.generator)
        mixed = range(MIXED_ORDERS * (size > 2))
        orders = [torch.rand(SETS, size, generator=self.generator).argsort(dim=1) for _ in mixed]
        orders.append((torch.arange(size) + shifts) % size)
        return max(_deviation(self.call(X[EACH_SET, order]), self._at(order, result)) for order in orders)

    def duplicates(self, X: Tensor) -> float:
        """Return the deviation with every other element replaced by the first one."""
        X = X.clone()
        X[:, ::2] = X[:, :1].clone()
        deviation = self.permutation(X)
        if not self.equivariant:
            return deviation
        equals = self.call(X)[:, ::2]
        return max(deviation, _deviation(equals, equals[:, :1].expand_as(equals)))

    def padding(self, X: Tensor, garbage: float) -> float:
        """Return the deviation with masked rows `garbage` * N(0, 1): at the end of one set, anywhere in the others."""
        size = X.shape[1] + PADDING
        order = torch.rand(SETS, size, generator=self.generator)
        order[0] = torch.arange(size)
        order[1:, 0] = torch.inf  # the first row is padding
        places = order.argsort(dim=1)[:, : X.shape[1]].sort(dim=1).values
        padded = garbage * self.draw(size, X.shape[2])
        padded[EACH_SET, places] = X
        mask = torch.zeros(SETS, size, dtype=torch.bool, device=X.device)
        mask[EACH_SET, places] = True
        return _deviation(self._at(places, self.call(padded, mask)), self.call(X))

    def _at(self, places: Tensor, result: Tensor) -> Tensor:
        """Return the rows of an equivariant function at `places` [B, m], or the whole result of an invariant one."""
        return result[EACH_SET, places] if self.equivariant else result

    def call(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for sets, by default without padding."""
        mask = X.new_ones(X.shape[:2]).bool() if mask is None else mask
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        try:
            output = self.function(X, mask) if self.mask else self.function(X)
        except PointsetError:
            raise
        except Exception as error:
            given = f"and a mask {list(mask.shape)}" if self.mask else "alone"
            reason = one_line(f"{type(error).__name__}: {error}", REPEATED)
            raise PointsetError(
                f"{name} cannot be called with X {list(X.shape)} {given} ({reason}): give dim= the width of its rows, "
                "or mask=False if it takes none"
            ) from error
        if not isinstance(output, Tensor):
            raise PointsetError(f"{name} must return a tensor, got {type(output).__name__}")
        if self.equivariant and output.shape[:2] != X.shape[:2]:
            raise PointsetError(f"{name} returns {list(output.shape)} for X {list(X.shape)}: {ROWS_NEEDED}")
        return output


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
        return math.inf  # max() would ignore a NaN
    scale = expected.abs().max().clamp(min=torch.finfo(exact).tiny)
    return float((output - expected).abs().max() / scale)
