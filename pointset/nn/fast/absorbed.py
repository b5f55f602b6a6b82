"""Absorbed attention: few queries read many rows Y, without projecting Y to keys or values.

    Q_j (Y W^K_j)^T = (Q_j W^K_j^T) Y^T,    A_j (Y W^V_j) = (A_j Y) W^V_j

because matrix products are associative. The key bias adds a constant to each row of logits, which does not change the
weights. The value bias is added at the end, because the rows of A_j sum to 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.fast.parts import Parts
from pointset.nn.fast.reading import read_sets


def absorbed(
    parts: Parts, Q: Float[Tensor, "_ n d"], Y: Float[Tensor, "B m dim_key"], mask: Tensor | None
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j), with explicit weights."""
    queries = absorbed_queries(parts, Q).flatten(1, 2)  # [_, h n, dim_key]
    logits = torch.matmul(queries, Y.mT).unflatten(1, (parts.heads, -1))  # [B, h, n, m]
    weights = parts.weigh(logits, mask)
    read = torch.matmul(weights.flatten(1, 2), Y)
    return absorbed_values(parts, read.unflatten(1, (parts.heads, -1)))


def absorbed_in_tiles(
    parts: Parts, Q: Float[Tensor, "1 n d"], Y: Float[Tensor, "*rows dim_key"], mask: Layout | None
) -> Float[Tensor, "B n d"]:
    """`absorbed` tile by tile, for softmax weights and queries shared by all sets; the sets may be packed."""
    (queries,) = absorbed_queries(parts, Q).flatten(1, 2)
    if isinstance(mask, Packed):
        read = read_sets(Y, queries, mask.lengths)
    else:
        lengths = [Y.shape[1]] * Y.shape[0]
        read = read_sets(Y.flatten(0, 1), queries, lengths, None if mask is None else mask.flatten())
    return absorbed_values(parts, read.unflatten(1, (parts.heads, -1)))


def absorbed_queries(parts: Parts, Q: Float[Tensor, "_ n d"]) -> Float[Tensor, "_ h n dim_key"]:
    """Q_j W^K_j^T: its products with the rows of Y are the logits, up to a constant per row of logits."""
    key = parts.key.weight.unflatten(0, (parts.heads, -1))  # [h, c, dim_key]
    return torch.einsum("bhnc,hcy->bhny", parts.scored_queries(Q), key)


def absorbed_values(parts: Parts, read: Float[Tensor, "B h n dim_key"]) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j), given the products A_j Y in `read`."""
    value = parts.value.weight.unflatten(0, (parts.heads, -1))
    return torch.einsum("bhny,hcy->bnhc", read, value).flatten(2) + parts.value.bias
