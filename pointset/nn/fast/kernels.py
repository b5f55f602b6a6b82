"""Choice of the fastest of several functions that compute attention with the same result."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.absorbed import Projection, absorbed, absorbed_in_tiles, absorbing_saves_products
from pointset.nn.fast.tiles import may_tile
from pointset.nn.masks import non_empty
from pointset.nn.scores import DotScore, Score, join_heads, split_heads

FEW_KEYS = 64
"""For at most this number of keys, two matrix products are faster on a CPU than torch's kernel, and the weights need no
more memory than the keys."""
MOST_WEIGHTS = 2**22
"""Number of weights of all sets and heads (16 MB) above which torch's kernel replaces `absorbed`, as they do not fit
the cache then. In the first layer of sab-pma with 500 to 1,000 points, the kernel takes 0.5 to 0.9 of the time of
`absorbed` for inference. For a training step, both take the same time, but the kernel takes two thirds of it if freed
memory is not kept for reuse."""
ANY_SIZE = 2**14
"""Size that stands for a symbolic size in programs that are compiled or exported for sets of any size."""

Kernel = Callable[..., Tensor]
"""kernel(Q, K, V, mask, score, weights) -> concat_j(A_j V_j) [B, n, d], for queries Q [_, n, d] and projections K and V
of rows Y. Padded rows of Y must be 0. The results of empty sets are not defined."""


def choose_kernel(
    Q: Tensor, Y: Tensor, key: nn.Linear, score: Score, weights: Any, records: bool, explicit: Kernel
) -> Kernel:
    """Return the fastest function for queries Q, rows Y and the layer `key` from rows to keys, or else `explicit`."""
    plain = is_plain(score, weights) and not records
    may_absorb = isinstance(score, DotScore) and weights.sum_to_one
    B, n, m = _known(Y.shape[0], 1), _known(Q.shape[1], ANY_SIZE), _known(Y.shape[1], ANY_SIZE)
    if may_absorb and absorbing_saves_products(n, m, score.heads, *key.weight.shape):
        if plain and _known(Q.shape[0], 0) == 1 and may_tile(Q, Y, key.weight):
            return absorbed_in_tiles
        if not plain or B * score.heads * n * m <= MOST_WEIGHTS:
            return absorbed
    return fused if plain and (m > FEW_KEYS or Y.device.type != "cpu") else explicit


def is_plain(score: Score, weights: Any) -> bool:
    """Return True for softmax weights without dropout and logits that are products of queries and keys."""
    return isinstance(score, DotScore) and weights.all_softmax and weights.sum_to_one


def fused(
    Q: Float[Tensor, "_ n d"], K: Projection, V: Projection, mask: Tensor | None, score: DotScore, weights: Kernel
) -> Float[Tensor, "B n d"]:
    """Return concat_j(A_j V_j) by torch's kernel, for softmax of products of queries and keys."""
    keys, values = score.keys(split_heads(K.product(), score.heads)), split_heads(V.product(), score.heads)
    queries = split_heads(Q, score.heads).expand(keys.shape[0], -1, -1, -1)
    # An empty set attends to its padding, as a row of -inf would give NaN. `Multihead.attend` replaces the result by 0.
    keep = None if mask is None else mask[:, None, None, :] | ~non_empty(mask).unsqueeze(-1)
    return join_heads(F.scaled_dot_product_attention(queries, keys, values, keep, scale=1.0))


def _known(size: int | torch.SymInt, symbolic: int) -> int:
    return size if isinstance(size, int) else symbolic
