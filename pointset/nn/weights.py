"""Attention weights from logits: the `weights` of Att(Q, K, V; score, weights).

The functions are in `simplex`. `Weights` applies one of them to each head, with upper bounds relative to the set size,
and then dropout.

A user-defined function f(logits, mask) is the activation of Att(Q, K, V; activation) = activation(Q K^T) V. The logits
[B, h, n, m] are scaled and divided by the temperature as for softmax (`scale=1.0` leaves the products unscaled). The
mask [B, 1, 1, m] is True at real keys, or None if all keys are real. The function returns weights in the shape of the
logits. The weights of padded keys are then set to 0. Rows need not sum to 1, and weights need not be positive (Lee et
al., arXiv 1810.00825, eq. 3, and lemma 3 of its supplement, where the activation is 1 + f).
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions, Weighting, name_of
from pointset.errors import REPEATED, PointsetError, described, one_line, quoted
from pointset.nn import registry
from pointset.nn.layers import Dropout
from pointset.nn.simplex import BOUNDED, WEIGHTS
from pointset.nn.simplex.masked import single_or_double


class Weights(nn.Module):
    """Weights [B, h, n, m] for logits [B, h, n, m] and a mask [B, m], with a sum of 1 in each row.

    Padded keys get exactly 0, and rows over an empty set are all 0. Rows of a user-defined function may have any sum.

    Constrained weights have the upper bound u = bound / m for m real keys, so no key gets more than `bound` times
    uniform attention. With `coverage`, the rows a_t of T seeds, or of T heads, are computed one after the other with
    the bounds

        u_1 = bound T / m,   u_(t+1) = max(0, u_t - a_t),

    so the T weights of a key sum to at most u_1, its *fertility*: `bound` times the sum under uniform attention. (In
    Malaviya et al., arXiv 1805.08241, fertilities are numbers of words.) As bound >= 1, the bounds of each row sum to
    at least 1.

    Args:
        options: heads, `weights`, `bound`, `coverage` ("seeds": the queries of each head share the bound; "heads": the
            heads of each query share it) and `attention_dropout`, the probability p with which a weight is set to zero
            in training. The other weights are then divided by 1 - p.

    Example:
        >>> weights = pointset.nn.Weights()(torch.zeros(1, 1, 2, 4), torch.tensor([[True, True, False, False]]))
        >>> weights[0, 0, 0].tolist()
        [0.5, 0.5, 0.0, 0.0]
    """

    def __init__(self, options: AttentionOptions = RELEASED) -> None:
        super().__init__()
        options.check_coverage()
        self.names = options.functions * (options.heads // len(options.functions))
        self.all_softmax = set(self.names) == {"softmax"}
        self.functions = {name: function_of(name) for name in dict.fromkeys(self.names) if name not in WEIGHTS}
        self.modules_of_functions = nn.ModuleList(f for f in self.functions.values() if isinstance(f, nn.Module))
        self.bound, self.coverage = options.bound, options.coverage
        self.dropout = Dropout(options.attention_dropout)

    @property
    def sum_to_one(self) -> bool:
        """True if each row over a non-empty set sums to 1, and a constant added to its logits has no effect."""
        return not self.functions and (not self.training or self.dropout.p == 0.0)

    def forward(
        self, logits: Float[Tensor, "B h n m"], mask: Bool[Tensor, "B m"] | None = None
    ) -> Float[Tensor, "B h n m"]:
        """Return the weights. `mask` is True at real keys."""
        keep = None if mask is None else mask[:, None, None, :]
        if self.coverage != "none":
            return self.dropout(self._in_turn(logits, keep))
        return self.dropout(self._by_head(self.names, logits, keep, self.bound / _keys(logits, keep)))

    def extra_repr(self) -> str:
        """Return the names of the functions."""
        return ", ".join(sorted({name_of(name) for name in self.names}))

    def _by_head(self, names: Sequence[Weighting], logits: Tensor, keep: Tensor | None, upper: Tensor) -> Tensor:
        if len(set(names)) > 1:
            heads = zip(names, logits.split(1, dim=1), upper.expand_as(logits).split(1, dim=1), strict=True)
            return torch.cat([self._by_head([name], row, keep, bound) for name, row, bound in heads], dim=1)
        (name,) = set(names)
        if name in self.functions:
            return user_weights(name, self.functions[name], logits, keep)
        return WEIGHTS[str(name)](logits, *((upper,) if name in BOUNDED else ()), mask=keep)

    def _in_turn(self, logits: Tensor, keep: Tensor | None) -> Tensor:
        """Compute the weights of seeds or heads in order, and subtract those of each from the bounds of the next."""
        # At least float32: rounding errors accumulate, and the bounds of the last row must still sum to 1.
        dtype, logits = logits.dtype, single_or_double(logits)
        axis = 2 if self.coverage == "seeds" else 1
        turns = logits.split(1, dim=axis)
        left = (self.bound * len(turns) / _keys(logits, keep)).expand_as(turns[0])
        rows: list[Tensor] = []
        for turn, row in enumerate(turns):
            names = self.names if axis == 2 else self.names[turn : turn + 1]
            rows.append(self._by_head(names, row, keep, left))
            left = (left - rows[-1]).clamp(min=0.0)
        return torch.cat(rows, dim=axis).to(dtype)


def _keys(logits: Tensor, keep: Tensor | None) -> Tensor:
    """Return the number of real keys of each set (1 for an empty set), broadcastable to the logits."""
    dtype = torch.promote_types(logits.dtype, torch.float32)  # bfloat16 is exact only up to 256
    keep = torch.ones_like(logits[:1, :1, :1], dtype=torch.bool) if keep is None else keep
    return keep.sum(dim=-1, keepdim=True).clamp(min=1).to(dtype)


def function_of(weights: Weighting) -> Callable[..., Any]:
    """Return the function for a registered name or a callable. Modules are copied for each block."""
    if isinstance(weights, str):
        registered = registry.REGISTERED.get(("weights", weights))
        if registered is None:
            remedy = f"use {', '.join(WEIGHTS)}, or first run the code that registers it with pointset.register_weights"
            raise PointsetError(f"no weights function is called {quoted(weights)}: {remedy}")
        weights = registered.module
        assert not isinstance(weights, str)
    if isinstance(weights, type):
        return weights()
    return copy.deepcopy(weights) if isinstance(weights, nn.Module) else weights


def user_weights(
    weights: Weighting,
    function: Callable[..., Any],
    logits: Float[Tensor, "B h n m"],
    keep: Bool[Tensor, "B 1 1 m"] | None,
) -> Float[Tensor, "B h n m"]:
    """Return the weights of a user-defined function, with 0 at padded keys."""
    called = f"weights function {name_of(weights)!r}"
    try:
        A = function(logits, keep)
    except TypeError as error:
        raise PointsetError(f"{called} must be a function f(logits, mask): {one_line(error, REPEATED)}") from error
    if not isinstance(A, Tensor) or A.shape != logits.shape:
        raise PointsetError(f"{called} must return weights {list(logits.shape)}, got {described(A)}")
    return A if keep is None else A.masked_fill(~keep, 0.0)
