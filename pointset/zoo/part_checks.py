"""User-defined encoders and poolings, tried on small sets when a model is built, where faults are told at once."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pointset.errors import REPEATED, PointsetError, described, one_line, place_in_own_code
from pointset.nn.modes import in_evaluation_mode
from pointset.nn.registry import Part

SETS, SIZES = 2, (3, 4)
"""Tried: several sets, and two sizes, so that neither a lost axis nor an output that grows with the set passes."""


def check_encoder(part: Part, modules: Sequence[nn.Module], inputs: int, dim: int) -> None:
    """Raise a PointsetError unless modules called in turn give rows [B, n, dim] of points [B, n, inputs]."""
    for X, found in _tried(part, modules, inputs):
        if found.shape != (*X.shape[:2], dim):
            raise PointsetError(f"{_called(part)} must give [B, n, dim], got {_got(found, X)} and dim={dim}")


def check_pooling(part: Part, pool: nn.Module, width: int) -> None:
    """Raise a PointsetError unless a pooling gives [B, d] or [B, rows, d] of rows [B, n, width]."""
    sizes = set()
    for X, found in _tried(part, [pool], width):
        sizes.add(found.shape[1:])
        if found.dim() not in (2, 3) or found.shape[0] != SETS or len(sizes) > 1:
            raise PointsetError(
                f"{_called(part)} must give [B, d] or [B, rows, d], the same d and rows for every n, "
                f"got {_got(found, X)}"
            )


def _tried(part: Part, modules: Sequence[nn.Module], width: int) -> list[tuple[Tensor, Tensor]]:
    """Sets of each size, with a padded row and without, and what the modules make of them."""
    generator = torch.Generator().manual_seed(0)
    results = []
    for size in SIZES:
        for padded in (0, 1):
            X = torch.randn(SETS, size, width, generator=generator)
            mask = torch.arange(size).expand(SETS, size) < size - padded if padded else None
            results.append((X, _result(part, modules, X, mask)))
    return results


def _result(part: Part, modules: Sequence[nn.Module], X: Tensor, mask: Tensor | None) -> Tensor:
    found, kept = X, X.clone()
    for module in modules:
        try:
            with torch.no_grad(), in_evaluation_mode(module):
                found = module(found, mask)
        except Exception as error:  # whatever a user's code raises
            said = one_line(error, REPEATED) or "no message"
            raise PointsetError(
                f"{_called(part)} fails on X {list(X.shape)} {'without a' if mask is None else 'with a'} mask: "
                f"{type(error).__name__}: {said}{place_in_own_code(error)}"
            ) from error
        if not isinstance(found, Tensor) or not found.is_floating_point():
            raise PointsetError(f"{_called(part)} must give a tensor of floating numbers, got {_told(found)}")
    if not X.equal(kept):  # other poolings of the model, and whoever gave the points, have the same tensor
        raise PointsetError(f"{_called(part)} must not change X in place: let forward work on a copy, as in X = X + 1")
    return found


def _called(part: Part) -> str:
    return f"{part.kind} {part.name!r}"


def _got(found: Tensor, X: Tensor) -> str:
    return f"{list(found.shape)} for {list(X.shape)}"


def _told(value: object) -> str:
    if value is None or isinstance(value, Tensor):
        return described(value)
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
