"""Chooses the order of operations of an attention: a pure function of shapes and state."""

from enum import Enum, auto
from typing import NamedTuple

import torch

FEW_KEYS = 64
"""Up to this number of keys, on a CPU, two plain products are faster than `scaled_dot_product_attention`, most of all
in bfloat16 (a training step of isab16-pma, 100 points, width 256: 60 against 108 ms), and the weights need no more
memory than the keys."""
FEW_ROUNDED_KEYS = 512
"""`FEW_KEYS` for products in bfloat16, for which torch's kernel is slow: with explicit weights, a training step of
sab-pma in mixed precision takes 0.4 to 0.7 of the time with 100 to 512 points. With 1,000 points it takes 0.8 to 1.0 of
the time, and all weights are kept in memory."""

MOST_WEIGHTS = 2**22
"""Number of weights of all sets and heads (16 MB) above which explicit weights no longer fit the cache. In the first
layer of sab-pma with 500 to 1,000 points, torch's fused kernel then takes as long for a training step, two thirds of
the time if memory is not kept for reuse, and 0.5 to 0.9 of the time for inference."""


class Way(Enum):
    """An order of operations; all give the same result up to rounding."""

    WRITTEN = auto()
    """A whole MAB in which many rows read few keys, tile by tile (`fast.writing`)."""
    RUNS = auto()
    """Packed sets as plain batches of sets of one size, one batch after the other (`fast.packing`)."""
    FOLDED = auto()
    """W^Q and W^O applied to few keys and values (`fast.folded`)."""
    ABSORBED_IN_TILES = auto()
    """W^K and W^V applied to few queries, tile by tile (`fast.absorbed`)."""
    ABSORBED = auto()
    """W^K and W^V applied to few queries, with explicit weights (`fast.absorbed`)."""
    ADDITIVE = auto()
    """An additive score with one hidden layer, in tiles (`fast.additive`)."""
    ADDITIVE_ABSORBED = auto()
    """As ADDITIVE, with W^V applied to few queries."""
    EXPLICIT = auto()
    """The formula itself, with explicit weights (`attend`)."""
    FUSED = auto()
    """`scaled_dot_product_attention`."""


class Case(NamedTuple):
    """The shapes and the state that decide the way."""

    heads: int
    dim: int
    dim_query: int
    dim_key: int
    n: int | None
    """Queries per set; None if they are packed, or symbolic (a compiled or exported program for any size)."""
    m: int | None
    """Keys per set, for packed sets their average; None if symbolic."""
    queries: int | None
    """Batch size of the queries; 1 if all sets of keys share them. None if symbolic."""
    sets: int | None
    """Batch size of the keys; None if symbolic."""
    packed_queries: bool = False
    packed_keys: bool = False
    linear: bool = True
    """The score is linear in queries and keys."""
    sum_to_one: bool = True
    """Rows of weights sum to 1 (no dropout)."""
    softmax: bool = True
    """The weights are softmax of a linear score, without dropout."""
    recorded: bool = False
    """The weights are recorded, so they must be computed explicitly."""
    tiles: bool = False
    """The tiled ways are allowed; see `may_tile`."""
    additive: bool = False
    """The score is additive with one hidden layer, and its tiled way is allowed; see `may_tile`."""
    cpu: bool = True
    rounded: bool = False
    """Products are computed in bfloat16."""
    output: bool = False
    """W^O follows, and the queries are not projected yet."""
    block: bool = False
    """A whole MAB is computed, in form "reference", without norms and without a mask of the keys."""


def plan(case: Case) -> Way:
    """The way to compute an attention: the first row of this table whose conditions hold.

    | sets   | further conditions                                                                  | way               |
    |--------|-------------------------------------------------------------------------------------|-------------------|
    | any    | `block`, tiles, at most FEW_KEYS keys, queries packed or no fewer than their keys   | WRITTEN           |
    | packed | queries are packed                                                                  | RUNS              |
    | packed | keys are packed; the row ABSORBED_IN_TILES below fits their average size            | ABSORBED_IN_TILES |
    | packed | keys are packed                                                                     | RUNS              |
    | padded | W^O follows, linear score, every set has its own queries, fewer products if folded  | FOLDED            |
    | padded | linear score, rows sum to 1, fewer products if absorbed; tiles, and shared queries  | ABSORBED_IN_TILES |
    | padded | linear score, rows sum to 1, fewer products if absorbed; unless there are more than | ABSORBED          |
    |        | MOST_WEIGHTS weights and the fused kernel is possible                               |                   |
    | padded | additive score in tiles, rows sum to 1, fewer products if only values are absorbed  | ADDITIVE_ABSORBED |
    | padded | additive score in tiles                                                             | ADDITIVE          |
    | padded | on a CPU at most FEW_KEYS keys (in bfloat16 FEW_ROUNDED_KEYS), or the weights are   | EXPLICIT          |
    |        | recorded, or not softmax of a linear score                                          |                   |
    | padded | otherwise                                                                           | FUSED             |

    ABSORBED_IN_TILES and WRITTEN are for softmax of a linear score that is not recorded. A symbolic size counts as
    large.
    """
    few = case.m is not None and case.m <= FEW_KEYS
    own = case.queries is not None and case.queries == case.sets
    many = case.packed_queries or (own and case.n is not None and case.m is not None and case.m <= case.n)
    if case.block and case.tiles and few and many:
        return Way.WRITTEN
    absorbs = case.linear and case.sum_to_one and absorbing_is_cheaper(case)
    in_tiles = absorbs and case.tiles and case.queries == 1
    if case.packed_queries or case.packed_keys:
        return Way.ABSORBED_IN_TILES if in_tiles else Way.RUNS
    if case.output and case.linear and own and folding_is_cheaper(case):
        return Way.FOLDED
    if in_tiles:
        return Way.ABSORBED_IN_TILES
    if absorbs and not fusing_saves_memory(case):
        return Way.ABSORBED
    if case.additive:
        few_values = case.sum_to_one and absorbing_values_is_cheaper(case)
        return Way.ADDITIVE_ABSORBED if few_values else Way.ADDITIVE
    few = few or (case.rounded and case.m is not None and case.m <= FEW_ROUNDED_KEYS)
    if (few and case.cpu) or case.recorded or not (case.linear and case.softmax):
        return Way.EXPLICIT
    return Way.FUSED


def absorbing_is_cheaper(case: Case) -> bool:
    """Compare the multiply-adds of one set; if the number of keys is symbolic, those per key."""
    heads, dim, dim_key, n, m = case.heads, case.dim, case.dim_key, case.n, case.m
    if n is None:
        return False
    if m is None:
        return heads * n * dim_key < (dim_key + n) * dim
    projected = 2 * m * dim_key * dim + 2 * n * m * dim
    absorbed = 2 * n * dim_key * dim + 2 * heads * n * m * dim_key
    return absorbed < projected


def fusing_saves_memory(case: Case) -> bool:
    """True if explicit weights would not fit the cache, and the fused kernel, which stores no weights, is possible."""
    if case.recorded or not case.softmax or case.n is None or case.m is None or case.sets is None:
        return False
    if case.rounded and case.m <= FEW_ROUNDED_KEYS:
        return False
    return case.heads * case.n * case.m * case.sets > MOST_WEIGHTS


def absorbing_values_is_cheaper(case: Case) -> bool:
    """Compare the multiply-adds of one set that follow the weights."""
    heads, dim, dim_key, n, m = case.heads, case.dim, case.dim_key, case.n, case.m
    if n is None or m is None:
        return False
    return n * dim_key * (heads * m + dim) < m * dim * (dim_key + n)


def folding_is_cheaper(case: Case) -> bool:
    """Compare the multiply-adds of one set."""
    heads, dim, dim_query, n, m = case.heads, case.dim, case.dim_query, case.n, case.m
    if n is None or m is None:
        return False
    plain = n * (dim_query * dim + 2 * m * dim + dim * dim)
    return (n * heads * m + m * dim) * (dim_query + dim) < plain


def known(size: int | torch.SymInt) -> int | None:
    """The size, or None if it is symbolic: the program is being compiled or exported for any size."""
    return size if isinstance(size, int) else None
