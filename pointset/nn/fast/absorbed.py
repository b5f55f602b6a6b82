"""Absorbed attention: few queries attend to many rows Y, without projecting Y to keys or values.

    Q_j (Y W^K_j)^T = (Q_j W^K_j^T) Y^T,    A_j (Y W^V_j) = (A_j Y) W^V_j

because matrix products are associative. The bias of the keys is omitted: it adds a constant to all logits of a query
and does not change the weights. The bias of the values is added at the end, because the rows of A_j sum to 1.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.fast.tiles import Scratch, in_tiles, softmax_backward, whole_sets
from pointset.nn.scores import DotScore, split_heads


class Projection(NamedTuple):
    """Rows Y, and a linear layer to keys or values. Absorbed attention does not apply this layer to Y."""

    rows: Float[Tensor, "B n d_in"]
    layer: nn.Linear

    def product(self) -> Float[Tensor, "B n d"]:
        """Return Y W + b."""
        return self.layer(self.rows)


def absorbed(
    Q: Float[Tensor, "_ n d"],
    K: Projection,
    V: Projection,
    mask: Tensor | None,
    score: DotScore,
    weights: Callable[[Tensor, Tensor | None], Tensor],
) -> Float[Tensor, "B n d"]:
    """Return concat_j(A_j V_j), for any function `weights` whose rows sum to 1."""
    queries = absorbed_queries(Q, K.layer, score).flatten(1, 2)  # [_, h n, dim_key]
    logits = torch.matmul(queries, K.rows.mT).unflatten(1, (score.heads, -1))  # [B, h, n, m]
    read = torch.matmul(weights(logits, mask).flatten(1, 2), V.rows)
    return absorbed_values(read.unflatten(1, (score.heads, -1)), V.layer)


def absorbed_in_tiles(
    Q: Float[Tensor, "1 n d"], K: Projection, V: Projection, mask: Tensor | None, score: DotScore, weights: object
) -> Float[Tensor, "B n d"]:
    """Compute `absorbed` tile by tile, for softmax weights and queries that all sets share."""
    (queries,) = absorbed_queries(Q, K.layer, score).flatten(1, 2)
    read = read_sets(K.rows, queries, mask)
    return absorbed_values(read.unflatten(1, (score.heads, -1)), V.layer)


def absorbed_queries(Q: Float[Tensor, "_ n d"], key: nn.Linear, score: DotScore) -> Float[Tensor, "_ h n dim_key"]:
    """Return Q_j W^K_j^T, whose products with the rows of Y are the logits, up to a constant for each query."""
    W = key.weight.unflatten(0, (score.heads, -1))  # [h, c, dim_key]
    return torch.einsum("bhnc,hcy->bhny", score.queries(split_heads(Q, score.heads)), W)


def absorbed_values(read: Float[Tensor, "B h n dim_key"], value: nn.Linear) -> Float[Tensor, "B n d"]:
    """Return concat_j(A_j V_j) from `read`, the products A_j Y."""
    W = value.weight.unflatten(0, (read.shape[1], -1))
    return torch.einsum("bhny,hcy->bnhc", read, W).flatten(2) + value.bias


def absorbing_saves_products(n: int, m: int, heads: int, dim: int, dim_key: int) -> bool:
    """Return True if absorbed attention of n queries to m keys needs fewer multiply-adds than with projected keys."""
    projected = 2 * m * dim_key * dim + 2 * n * m * dim
    absorbed = 2 * n * dim_key * dim + 2 * heads * n * m * dim_key
    return absorbed < projected


def read_sets(
    X: Float[Tensor, "B n d"], F: Float[Tensor, "q d"], keep: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B q d"]:
    """Return S = softmax(F X^T) X of each set for scaled queries F, or 0 for an empty set.

    `keep` is True at real rows, or None if all rows are real. Padded rows must be finite.
    """
    return in_tiles(partial(_read, keep=keep), _read_backward, partial(read_plainly, keep=keep), X, F)


def read_plainly(
    X: Float[Tensor, "B n d"], F: Float[Tensor, "q d"], keep: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B q d"]:
    """Compute `read_sets` in plain torch operations, for second derivatives."""
    logits = F @ X.mT
    if keep is None:
        return torch.softmax(logits, dim=2) @ X
    real = keep[:, None]
    return (torch.softmax(logits.masked_fill(~real, torch.finfo(X.dtype).min), dim=2) * real) @ X


def _read(X: Tensor, F: Tensor, *, keeps: bool, keep: Tensor | None) -> tuple[Tensor, ...]:
    """Return S and, with `keeps`, the weights [B, q, n]."""
    (B, n, width), q = X.shape, len(F)
    S, kept = X.new_empty(B, q, width), X.new_empty(B if keeps else 0, q, n)
    scratch = Scratch(X)
    for sets in whole_sets(B, n * max(F.shape)):
        x = X[sets]
        logits = torch.bmm(F.expand(len(x), -1, -1), x.mT, out=scratch(len(x), q, n))
        if keep is not None:
            real = keep[sets][:, None]
            logits.masked_fill_(~real, torch.finfo(X.dtype).min)
        weights = torch.softmax(logits, dim=2, out=kept[sets] if keeps else logits)
        if keep is not None:
            weights.mul_(real)
        torch.bmm(weights, x, out=S[sets])
    return S, kept


def _read_backward(gS: Tensor, for_rows: bool, X: Tensor, F: Tensor, kept: Tensor) -> tuple[Tensor | None, Tensor]:
    gF = torch.zeros_like(F)
    gX = torch.empty_like(X) if for_rows else None
    scratch = Scratch(X)
    for sets in whole_sets(len(X), X.shape[1] * max(F.shape)):
        x, weights, g = X[sets], kept[sets], gS[sets]
        g_logits = softmax_backward(torch.bmm(g, x.mT, out=scratch(*weights.shape)), weights)
        gF += torch.bmm(g_logits, x).sum(dim=0)
        if gX is not None:
            gx = torch.bmm(weights.mT, g, out=gX[sets])
            gx.baddbmm_(g_logits.mT, F.expand(len(x), -1, -1))
    return gX, gF
