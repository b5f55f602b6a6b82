"""Does a module treat its input as a set? Measured, not believed."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Symmetry:
    """The worst deviations found, as shares of the largest output."""

    kind: str
    """"invariant" when the output has no row per element, "equivariant" when it has."""
    permutation: float
    """Between f(P X) and f(X), or P f(X) for an equivariant module."""
    padding: float | None
    """Between a set and the same set with masked rows added; None when the module takes no mask."""

    @property
    def worst(self) -> float:
        """The larger of the deviations."""
        return max(self.permutation, self.padding or 0.0)


def check_symmetry(
    module: nn.Module,
    *,
    sizes: tuple[int, ...] = (1, 2, 7, 31),
    dim: int = 3,
    seed: int = 0,
    mask: bool = True,
) -> Symmetry:
    """Test invariance or equivariance under random permutations and under padding, in evaluation mode.

    Args:
        module: called as `module(X [B, n, dim], mask [B, n])`. An output [B, n, .] is taken as equivariant, any other
            as invariant.
        sizes: set sizes to try; tell apart from every output size but the set's own.
        dim: width of the rows.
        seed: of sets and permutations.
        mask: False for a module that is called with X alone; padding is then not tested.

    Returns:
        The worst deviations. For a correct module they are of the order of its rounding (float32: below 1e-4).
    """
    generator = torch.Generator().manual_seed(seed)
    was_training = module.training
    module.eval()
    permutation, padding, equivariant = 0.0, 0.0, True
    try:
        with torch.no_grad():
            for size in sizes:
                X = _like_parameters(module, torch.randn(3, size, dim, generator=generator))
                keep = torch.ones(3, size, dtype=torch.bool, device=X.device)
                result = module(X, keep) if mask else module(X)
                rows = result.dim() == 3 and result.shape[1] == size
                equivariant = equivariant and rows
                order = torch.randperm(size, generator=generator)
                moved = module(X[:, order], keep) if mask else module(X[:, order])
                permutation = max(permutation, _deviation(moved, result[:, order] if rows else result))
                if mask:
                    garbage = _like_parameters(module, torch.randn(3, 5, dim, generator=generator))
                    padded = module(torch.cat([X, garbage], 1), torch.cat([keep, keep.new_zeros(3, 5)], 1))
                    padding = max(padding, _deviation(padded[:, :size] if rows else padded, result))
    finally:
        module.train(was_training)
    return Symmetry("equivariant" if equivariant else "invariant", permutation, padding if mask else None)


def _like_parameters(module: nn.Module, X: Tensor) -> Tensor:
    parameter = next(module.parameters(), None)
    return X if parameter is None else X.to(parameter)


def _deviation(found: Tensor, expected: Tensor) -> float:
    scale = expected.abs().max().clamp(min=torch.finfo(expected.dtype).tiny)
    return float((found - expected).abs().max() / scale)
