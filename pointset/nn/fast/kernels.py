"""Choice of the fastest function that computes attention; all of them have the same result."""

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
"""On a CPU with at most this number of keys, two matrix products are faster than torch's kernel, and the weights need
no more memory than the keys."""
MOST_WEIGHTS = 2**22
"""Number of weights of all sets and heads (16 MB) above which torch's kernel replaces `absorbed`, as they do not fit
the cache. In the first layer of sab-pma with 500 to 1,000 points, the kernel takes 0.5 to 0.9 of the time of `absorbed`
for inference. For a training step, it takes the same time, or two thirds of it if memory is not kept for reuse."""
ANY_SIZE = 2**14
"""Value for a symbolic size, when the program is compiled or exported for sets of any size."""

Kernel = Callable[..., Tensor]
"""kernel(Q, K, V, mask, score, weights) -> concat_j(A_j V_j) [B, n, d], for queries Q [_, n, d] and projections K and V
of rows Y. Padded rows of Y must be 0. The results of empty sets are not defined."""


def choose_kernel(
    Q: Tensor, Y: Tensor, key: nn.Linear, score: Score, weights: Any, records: bool, explicit: Kernel
) -> Kernel:
    """Return the fastest function for queries Q and rows Y with a projection to keys; `explicit` if none is faster."""
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
    """Return True for softmax without dropout, of logits that are products of queries and keys."""
    return isinstance(score, DotScore) and weights.all_softmax and weights.sum_to_one


def fused(
    Q: Float[Tensor, "_ n d"], K: Projection, V: Projection, mask: Tensor | None, score: DotScore, weights: Kernel
) -> Float[Tensor, "B n d"]:
    """Return concat_j(A_j V_j) by torch's kernel, for softmax of a linear score."""
    keys, values = score.keys(split_heads(K.product(), score.heads)), split_heads(V.product(), score.heads)
    queries = split_heads(Q, score.heads).expand(keys.shape[0], -1, -1, -1)
    # An empty set attends to its padding, as a row of -inf would give NaN; `Multihead.attend` then returns 0.
    keep = None if mask is None else mask[:, None, None, :] | ~non_empty(mask).unsqueeze(-1)
    return join_heads(F.scaled_dot_product_attention(queries, keys, values, keep, scale=1.0))


def _known(size: int | torch.SymInt, symbolic: int) -> int:
    return size if isinstance(size, int) else symbolic
