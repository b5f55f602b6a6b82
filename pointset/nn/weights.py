"""Attention weights from logits: the `weights` of Att(Q, K, V; score, weights).

The functions are in `simplex`, and those of users in `own_weights`. This module combines them in a block: one function
per head, upper bounds relative to the set size, and dropout.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions, Weighting, name_of
from pointset.inputs import takes
from pointset.nn.dropout import Dropout
from pointset.nn.own_weights import apply, exports, function_of
from pointset.nn.rows import check_logits
from pointset.nn.simplex import BOUNDED, WEIGHTS
from pointset.nn.simplex.rows import single_or_double


class Weights(nn.Module):
    """Logits [B, h, n, m] and a mask [B, m] -> weights [B, h, n, m], whose rows sum to 1 over the real keys.

    Padded keys get exactly 0, and rows over an empty set are all 0. Rows of a user-defined function may have any sum.

    Constrained weights are at most u. With m real keys, u = bound / m, so no key gets more than `bound` times uniform
    attention. With `coverage`, the rows of T seeds, or of T heads, are computed one after the other,

        u_1 = bound T / m,   u_(t+1) = max(0, u_t - a_t),

    and share one *fertility* per key: their sum for a key is at most `bound` times its value under uniform attention
    (after Malaviya et al., arXiv 1805.08241, where fertilities are whole words). Since bound >= 1, a feasible row
    always remains.

    Args:
        options: heads, `weights`, `bound`, `coverage` ("seeds": the queries of each head share the bound; "heads": the
            heads of each query do) and `attention_dropout`, the probability with which a weight is set to zero in
            training; the other weights are divided by 1 - rate.

    Example:
        >>> weights = pointset.nn.Weights()(torch.zeros(1, 1, 2, 4), torch.tensor([[True, True, False, False]]))
        >>> weights[0, 0, 0].tolist()
        [0.5, 0.5, 0.0, 0.0]
    """

    @takes(options=AttentionOptions)
    def __init__(self, options: AttentionOptions = RELEASED) -> None:
        super().__init__()
        self.names = options.weights * (options.heads // len(options.weights))
        self.all_softmax = set(self.names) == {"softmax"}
        self.functions = {one: function_of(one) for one in dict.fromkeys(self.names) if one not in WEIGHTS}
        self.modules_of_functions = nn.ModuleList(one for one in self.functions.values() if isinstance(one, nn.Module))
        self.bound, self.coverage = options.bound, options.coverage
        self.dropout = Dropout(options.attention_dropout)

    @property
    def are_softmax(self) -> bool:
        """True if all rows are softmax without dropout, which fused attention can compute."""
        return self.all_softmax and self.sum_to_one

    @property
    def sum_to_one(self) -> bool:
        """True if every row of a non-empty set sums to 1: no dropout and no user-defined function.

        Such weights also do not change when a constant is added to all logits of a row.
        """
        return not self.functions and (not self.training or self.dropout.rate == 0.0)

    def unexportable(self) -> list[str]:
        """The user-defined functions that are not registered for export."""
        return [name_of(one) for one in self.functions if not exports(one)]

    def forward(
        self, logits: Float[Tensor, "B h n m"], mask: Bool[Tensor, "B m"] | None = None
    ) -> Float[Tensor, "B h n m"]:
        """Return the weights; the mask is True at real keys."""
        check_logits(logits, mask)
        keep = None if mask is None else mask[:, None, None, :]
        if self.coverage == "none":
            return self.dropout(self._by_head(logits, keep))
        return self.dropout(self._in_turn(logits, keep))

    def extra_repr(self) -> str:
        """The names of the functions, and the bound if it is used."""
        bound = f", bound={self.bound}, coverage={self.coverage}" if set(self.names) & BOUNDED else ""
        return ", ".join(sorted({name_of(one) for one in self.names})) + bound

    def _by_head(self, logits: Tensor, keep: Tensor | None) -> Tensor:
        if len(set(self.names)) == 1:
            return self._named(self.names[0], logits, keep)
        rows = zip(self.names, logits.split(1, dim=1), strict=True)
        return torch.cat([self._named(name, row, keep) for name, row in rows], dim=1)

    def _named(self, name: Weighting, logits: Tensor, keep: Tensor | None) -> Tensor:
        if name in self.functions:
            return apply(name, self.functions[name], logits, keep)
        assert isinstance(name, str)
        if name in BOUNDED:
            return WEIGHTS[name](logits, self.bound / self._keys(logits, keep), mask=keep)
        return WEIGHTS[name](logits, mask=keep)

    def _in_turn(self, logits: Tensor, keep: Tensor | None) -> Tensor:
        """Weights of seeds or heads, one after the other; each gets the part of the bound that earlier ones left.

        Computed in float32 at least, even for logits in half precision: the remaining bounds must sum to 1 for the last
        row too, and rounding errors would accumulate.
        """
        dtype, logits = logits.dtype, single_or_double(logits)
        axis = 2 if self.coverage == "seeds" else 1
        parts = logits.split(1, dim=axis)
        left = (self.bound * len(parts) / self._keys(logits, keep)).expand_as(parts[0])
        names = self.names[:1] * len(parts) if axis == 2 else self.names
        rows = []
        for name, part in zip(names, parts, strict=True):
            rows.append(self._bounded(name, part, left, keep))
            left = (left - rows[-1]).clamp(min=0.0)
        return torch.cat(rows, dim=axis).to(dtype)

    def _bounded(self, name: Weighting, logits: Tensor, upper: Tensor, keep: Tensor | None) -> Tensor:
        if logits.shape[1] == 1 or len(set(self.names)) == 1:
            return WEIGHTS[str(name)](logits, upper, mask=keep)
        rows = zip(self.names, logits.split(1, dim=1), upper.split(1, dim=1), strict=True)
        return torch.cat([WEIGHTS[str(one)](row, bound, mask=keep) for one, row, bound in rows], dim=1)

    def _keys(self, logits: Tensor, keep: Tensor | None) -> Tensor:
        """Number of real keys of each set, in a shape that broadcasts with the logits; 1 for an empty set.

        In float32 or float64, because bfloat16 represents integers exactly only up to 256.
        """
        dtype = torch.promote_types(logits.dtype, torch.float32)
        if keep is None:
            return logits.new_full((1, 1, 1, 1), max(1, logits.shape[-1]), dtype=dtype)
        return keep.sum(dim=-1, keepdim=True).clamp(min=1).to(dtype)
