"""Absorbed attention: few queries read many rows Y, without projecting Y to keys or values.

    Q_j (Y W^K_j)^T = (Q_j W^K_j^T) Y^T,    A_j (Y W^V_j) = (A_j Y) W^V_j

because matrix products are associative. The key bias adds a constant to each row of logits, which does not change the
weights. The value bias is added at the end, because the rows of A_j sum to 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.fast.reading import read_sets
from pointset.nn.scores import DotScore, split_heads


class Projection(NamedTuple):
    """Rows Y and a linear layer. Keys or values are their product, which absorbed attention does not need."""

    rows: Float[Tensor, "*rows d_in"]
    layer: nn.Linear

    def product(self) -> Float[Tensor, "*rows d"]:
        """Y W + b."""
        return self.layer(self.rows)


def absorbed(
    Q: Float[Tensor, "_ n d"],
    K: Projection,
    V: Projection,
    mask: Tensor | None,
    score: DotScore,
    weights: Callable[[Tensor, Tensor | None], Tensor],
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j), with explicit weights whose rows sum to 1."""
    queries = absorbed_queries(Q, K.layer, score).flatten(1, 2)  # [_, h n, dim_key]
    logits = torch.matmul(queries, K.rows.mT).unflatten(1, (score.heads, -1))  # [B, h, n, m]
    read = torch.matmul(weights(logits, mask).flatten(1, 2), V.rows)
    return absorbed_values(read.unflatten(1, (score.heads, -1)), V.layer)


def absorbed_in_tiles(
    Q: Float[Tensor, "1 n d"], K: Projection, V: Projection, mask: Layout | None, score: DotScore, weights: object
) -> Float[Tensor, "B n d"]:
    """`absorbed` tile by tile, for softmax weights and queries shared by all sets; the sets may be packed."""
    (queries,) = absorbed_queries(Q, K.layer, score).flatten(1, 2)
    if isinstance(mask, Packed):
        read = read_sets(K.rows, queries, mask.lengths)
    else:
        sets, length = K.rows.shape[:2]
        read = read_sets(K.rows.flatten(0, 1), queries, [length] * sets, None if mask is None else mask.flatten())
    return absorbed_values(read.unflatten(1, (score.heads, -1)), V.layer)


def absorbed_queries(Q: Float[Tensor, "_ n d"], key: nn.Linear, score: DotScore) -> Float[Tensor, "_ h n dim_key"]:
    """Q_j W^K_j^T: its products with the rows of Y are the logits, up to a constant per row of logits."""
    W = key.weight.unflatten(0, (score.heads, -1))  # [h, c, dim_key]
    return torch.einsum("bhnc,hcy->bhny", score.queries(split_heads(Q, score.heads)), W)


def absorbed_values(read: Float[Tensor, "B h n dim_key"], value: nn.Linear) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j), given the products A_j Y in `read`."""
    W = value.weight.unflatten(0, (read.shape[1], -1))
    return torch.einsum("bhny,hcy->bnhc", read, W).flatten(2) + value.bias


def absorbing_saves_products(n: int, m: int, heads: int, dim: int, dim_key: int) -> bool:
    """Compare the multiply-adds of one set with n queries and m keys."""
    projected = 2 * m * dim_key * dim + 2 * n * m * dim
    absorbed = 2 * n * dim_key * dim + 2 * heads * n * m * dim_key
    return absorbed < projected
