"""User-defined weights functions: the activation of Att(Q, K, V; activation) = activation(Q K^T) V, any callable.

A function gets the logits [B, h, n, m] of all queries and keys, scaled and divided by the temperature as for softmax
(`scale=1.0` leaves the products as they are), and returns as many weights. It need not give rows that sum to 1, or
positive weights (Lee et al., arXiv 1810.00825, eq. 3, and lemma 3 of its supplement, where it is 1 + f).

Padded keys get 0 whatever it returns for them. A function with a parameter `mask` is called once, with a mask
[B, 1, 1, m] that is True at real keys, or None; one without is never shown a padded key: it is called for the sets of
each size in turn, so that it may normalise over the keys.
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
    """The function that a name or a callable stands for; a module, which may be trained, is each block's own.

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
    """True for a registered function that says so."""
    part = registry.PARTS.get(("weights", weights)) if isinstance(weights, str) else None
    return part is not None and part.export


def apply(
    weights: Weighting, function: Function, logits: Float[Tensor, "B h n m"], keep: Bool[Tensor, "B 1 1 m"] | None
) -> Float[Tensor, "B h n m"]:
    """The weights of a user's function, 0 at padded keys.

    Raises:
        PointsetError: it does not return one weight for each logit.
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
    """The same for a function without a mask: one call for all sets with the same number of real keys."""
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
    """Whether a function takes a mask of the real keys."""
    is_module = inspect.isclass(function) or isinstance(function, nn.Module)
    called = getattr(function, "forward", function) if is_module else function
    try:
        return "mask" in inspect.signature(called).parameters
    except ValueError:  # some functions written in C have no signature
        return False


def checked(weights: Weighting, logits: Tensor, found: object) -> Tensor:
    """What a function returned, if it is one weight for each logit."""
    if isinstance(found, Tensor) and found.shape == logits.shape:
        return found
    got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
    raise PointsetError(f"weights function {name_of(weights)!r} must return weights {list(logits.shape)}, got {got}")
