"""Which way an attention is computed: a pure function of shapes and state."""

from enum import Enum, auto
from typing import NamedTuple

import torch

FEW_KEYS = 64
"""Up to here, on a CPU, two plain products beat `scaled_dot_product_attention`, most of all in bfloat16 (a training
step of isab16-pma, 100 points, width 256: 60 against 108 ms), and the weights are no larger than the keys."""
FEW_ROUNDED_KEYS = 512
"""The same of products in bfloat16, for which torch's kernel is slow: a training step of sab-pma in mixed precision
takes 0.4 to 0.7 of its time with 100 to 512 points. With 1,000 0.8 to 1.0, and all weights are kept."""

MOST_WEIGHTS = 2**22
"""Of all sets and heads together, 16 MB. Where there are more, softmax and products of the first layer of sab-pma go
through memory: fused, a training step with 500 to 1,000 points takes as long, and without kept memory two thirds of the
time; inference takes 0.5 to 0.9 of it."""


class Way(Enum):
    """An order of operations; all give the same numbers to rounding."""

    WRITTEN = auto()
    """A whole MAB of rows that read few keys, tile by tile (`fast.writing`)."""
    RUNS = auto()
    """Packed sets as plain batches of sets of one size, one batch after the other."""
    FOLDED = auto()
    """W^Q and W^O moved to few keys (`fast.folded`)."""
    ABSORBED_IN_TILES = auto()
    """W^K and W^V moved to few queries, tile by tile (`fast.absorbed`)."""
    ABSORBED = auto()
    """W^K and W^V moved to few queries, with explicit weights."""
    ADDITIVE = auto()
    """An additive score with one hidden layer, in tiles (`fast.additive`)."""
    ADDITIVE_ABSORBED = auto()
    """The same, with W^V moved to few queries."""
    EXPLICIT = auto()
    """The formula as it stands, `attend`."""
    FUSED = auto()
    """`scaled_dot_product_attention`."""


class Case(NamedTuple):
    """The shapes and the state that a way is chosen by."""

    heads: int
    dim: int
    dim_query: int
    dim_key: int
    n: int | None
    """Queries of a set; None if they are packed, or if a recorded program leaves their number open."""
    m: int | None
    """Keys of a set, of packed sets on average; None if a recorded program leaves their number open."""
    queries: int | None
    """Sets of queries; 1 may serve all sets of keys."""
    sets: int | None
    """Sets of keys."""
    packed_queries: bool = False
    packed_keys: bool = False
    linear: bool = True
    """The score is linear in queries and keys."""
    sum_to_one: bool = True
    """Rows of weights sum to 1: nothing is dropped."""
    softmax: bool = True
    """The weights are softmax, and nothing is dropped."""
    recorded: bool = False
    """Somebody wants to see the weights."""
    tiles: bool = False
    """The tiled ways may be taken; see `may_tile`."""
    additive: bool = False
    """The score is additive with one hidden layer, which may be made in tiles; see `may_tile`."""
    cpu: bool = True
    rounded: bool = False
    """Products are in bfloat16."""
    output: bool = False
    """W^O follows, and the queries are not projected yet."""
    block: bool = False
    """All of a MAB is wanted, in form "reference", without norms and without a mask of the keys."""


def plan(case: Case) -> Way:
    """The way to compute an attention: that of the first row which fits.

    | sets   | what else holds                                                                     | way               |
    |--------|-------------------------------------------------------------------------------------|-------------------|
    | any    | `block`, tiles, at most FEW_KEYS keys, queries packed or no fewer than their keys   | WRITTEN           |
    | packed | queries are packed                                                                  | RUNS              |
    | packed | keys are packed; the row ABSORBED_IN_TILES below fits their average size            | ABSORBED_IN_TILES |
    | packed | keys are packed                                                                     | RUNS              |
    | padded | W^O follows, linear score, every set has its own queries, fewer products if folded  | FOLDED            |
    | padded | linear score, rows sum to 1, fewer products if absorbed; tiles, and shared queries  | ABSORBED_IN_TILES |
    | padded | linear score, rows sum to 1, fewer products if absorbed; not with more than         | ABSORBED          |
    |        | MOST_WEIGHTS weights that torch's kernel need not make                              |                   |
    | padded | additive score in tiles, rows sum to 1, fewer products if only values are absorbed  | ADDITIVE_ABSORBED |
    | padded | additive score in tiles                                                             | ADDITIVE          |
    | padded | on a CPU at most FEW_KEYS keys (in bfloat16 FEW_ROUNDED_KEYS), or the weights are   | EXPLICIT          |
    |        | recorded or are not plain                                                           |                   |
    | padded | none of these: softmax of a linear score                                            | FUSED             |

    Tiles are for softmax of a linear score that nobody records. A size that is not known is large.
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
    """Compare the multiply-adds of one set; for an unknown number of keys, those of one key."""
    heads, dim, dim_key, n, m = case.heads, case.dim, case.dim_key, case.n, case.m
    if n is None:
        return False
    if m is None:
        return heads * n * dim_key < (dim_key + n) * dim
    projected = 2 * m * dim_key * dim + 2 * n * m * dim
    absorbed = 2 * n * dim_key * dim + 2 * heads * n * m * dim_key
    return absorbed < projected


def fusing_saves_memory(case: Case) -> bool:
    """Whether explicit weights would go through memory, and torch's kernel, which makes none, may be taken."""
    if case.recorded or not case.softmax or case.n is None or case.m is None or case.sets is None:
        return False
    if case.rounded and case.m <= FEW_ROUNDED_KEYS:
        return False
    return case.heads * case.n * case.m * case.sets > MOST_WEIGHTS


def absorbing_values_is_cheaper(case: Case) -> bool:
    """Compare the multiply-adds of one set after its weights."""
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
    """A size, or None for a symbol of a program that is recorded for all sizes."""
    return size if isinstance(size, int) else None
