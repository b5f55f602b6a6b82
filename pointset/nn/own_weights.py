"""User-defined weights functions: any callable as the activation of Att(Q, K, V; activation) = activation(Q K^T) V.

A function gets the logits [B, h, n, m] of all queries and keys, scaled and divided by the temperature as for softmax
(`scale=1.0` leaves the products unscaled), and returns weights of the same shape. Rows need not sum to 1, and weights
need not be positive (Lee et al., arXiv 1810.00825, eq. 3, and lemma 3 of its supplement, where it is 1 + f).

Padded keys always get weight 0. A function with a parameter `mask` is called once, with a mask [B, 1, 1, m] that is
True at real keys, or None. A function without this parameter never gets padded keys: it is called once for all sets of
each size, so it may normalise over the keys.
"""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import Weighting, name_of
from pointset.errors import PointsetError, quoted
from pointset.nn import registry

Function = Callable[..., Any]


def function_of(weights: Weighting) -> Function:
    """The function for a name or a callable. A module, which may have trained weights, is copied for each block.

    Raises:
        PointsetError: the name is not registered.
    """
    if isinstance(weights, str):
        part = registry.PARTS.get(("weights", weights))
        if part is None:
            raise PointsetError(
                f"no weights function is called {quoted(weights)}: run the code that registers it first "
                "(pointset.register_weights)"
            )
        weights = part.make
    if isinstance(weights, type):
        return weights()
    return copy.deepcopy(weights) if isinstance(weights, nn.Module) else weights


def exports(weights: Weighting) -> bool:
    """True for a function that was registered as exportable."""
    part = registry.PARTS.get(("weights", weights)) if isinstance(weights, str) else None
    return part is not None and part.export


def apply(
    weights: Weighting, function: Function, logits: Float[Tensor, "B h n m"], keep: Bool[Tensor, "B 1 1 m"] | None
) -> Float[Tensor, "B h n m"]:
    """The weights of a user's function, 0 at padded keys.

    Raises:
        PointsetError: the function does not return one weight for each logit.
    """
    if takes_mask(function):
        A = checked(weights, logits, function(logits, mask=keep))
        return A if keep is None else A.masked_fill(~keep, 0.0)
    if keep is None:
        return checked(weights, logits, function(logits))
    return size_by_size(weights, function, logits, keep[:, 0, 0])


def size_by_size(
    weights: Weighting, function: Function, logits: Float[Tensor, "B h n m"], keep: Bool[Tensor, "B m"]
) -> Float[Tensor, "B h n m"]:
    """`apply` for a function without a parameter `mask`: one call for all sets with the same number of real keys."""
    counts = keep.sum(dim=1)
    real_first = keep.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    order = counts.argsort()
    sizes, sets = counts[order].unique_consecutive(return_counts=True)
    pieces = []
    for size, rows in zip(sizes.tolist(), order.split(sets.tolist()), strict=True):
        places = real_first[rows, :size][:, None, None].expand(-1, *logits.shape[1:3], -1)
        inside = logits[rows].gather(3, places)
        found = checked(weights, inside, function(inside)) if size else inside
        pieces.append(found.new_zeros(len(rows), *logits.shape[1:]).scatter(3, places, found))
    return torch.cat(pieces)[order.argsort()]


def takes_mask(function: Callable[..., Any]) -> bool:
    """True if a function or module has a parameter `mask`."""
    is_module = inspect.isclass(function) or isinstance(function, nn.Module)
    called = getattr(function, "forward", function) if is_module else function
    try:
        return "mask" in inspect.signature(called).parameters
    except ValueError:  # some functions written in C have no signature
        return False


def checked(weights: Weighting, logits: Tensor, found: object) -> Tensor:
    """The result of a weights function; raises a PointsetError unless it is one weight for each logit."""
    if isinstance(found, Tensor) and found.shape == logits.shape:
        return found
    got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
    raise PointsetError(f"weights function {name_of(weights)!r} must return weights {list(logits.shape)}, got {got}")
