"""Multihead attention from one set to another.

    Att(Q, K, V; score, weights) = weights(score(Q, K)) V
    Multihead(X, Y, Y) = concat_j(Att(Q_j, K_j, V_j)) W^O,    Q = X W^Q, K = Y W^K, V = Y W^V

Scores are in `scores`, weights in `weights`. There are several ways to compute one value; `plan` chooses the cheapest,
and `fast` holds those that take another order of operations.

Letters: X [B, n, .] asks, Y [B, m, .] answers, h heads, width d, c = d / h per head; mask [B, m] is True at the real
rows of Y. Either may also be rows [N, .] of sets of several sizes, with a `Packed` that tells them apart.
Sources: "Attention is all you need" (arXiv 1706.03762, section 3.2); "Set Transformer" (arXiv 1810.00825, eq. 2 to 4).
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions
from pointset.nn.fast.absorbed import absorbed, absorbed_in_tiles
from pointset.nn.fast.folded import folded
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.fast.tiles import may_tile
from pointset.nn.masks import non_empty, zero_padding
from pointset.nn.scores import DotScore, Score, make_score
from pointset.nn.weights import Weights

FEW_KEYS = 64
"""Up to here, on a CPU, two plain products beat `scaled_dot_product_attention`, most of all in bfloat16 (a training
step of isab16-pma, 100 points, width 256: 60 against 108 ms), and the weights are no larger than the keys."""


def attend(
    Q: Float[Tensor, "_ h n c"],
    K: Float[Tensor, "B h m c"],
    V: Float[Tensor, "B h m e"],
    score: Score,
    weights: Weights,
    mask: Bool[Tensor, "B m"] | None = None,
) -> tuple[Float[Tensor, "B h n e"], Float[Tensor, "B h n m"]]:
    """Att(Q, K, V; score, weights), and the weights; the mask is True at real keys."""
    A = weights(score(Q, K), mask)
    return torch.matmul(A, V), A


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
    cpu: bool = True
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
    | padded | linear score, rows sum to 1, fewer products if absorbed                             | ABSORBED          |
    | padded | on a CPU at most FEW_KEYS keys, or the weights are recorded or are not plain        | EXPLICIT          |
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
    if absorbs:
        return Way.ABSORBED_IN_TILES if in_tiles else Way.ABSORBED
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


def folding_is_cheaper(case: Case) -> bool:
    """Compare the multiply-adds of one set."""
    heads, dim, dim_query, n, m = case.heads, case.dim, case.dim_query, case.n, case.m
    if n is None or m is None:
        return False
    plain = n * (dim_query * dim + 2 * m * dim + dim * dim)
    return (n * heads * m + m * dim) * (dim_query + dim) < plain


class Multihead(nn.Module):
    """Multihead(X, Y, Y) = concat_j(weights(score(Q_j, K_j)) V_j) W^O, with Q = X W^Q, K = Y W^K, V = Y W^V.

    By default softmax(Q_j K_j^T / sqrt(d)); the options name other scores and weights. Form "reference" has no W^O.

    Args:
        dim_query: width of the rows of X.
        dim_key: width of the rows of Y.
        dim: width d of the result, a multiple of the heads.
        options: heads, form, score and weights.
    """

    def __init__(self, dim_query: int, dim_key: int, dim: int, options: AttentionOptions = RELEASED) -> None:
        super().__init__()
        self.heads = options.heads
        self.query = nn.Linear(dim_query, dim)
        self.key = nn.Linear(dim_key, dim)
        self.value = nn.Linear(dim_key, dim)
        self.output: nn.Module = nn.Linear(dim, dim) if options.form == "paper" else nn.Identity()
        self.score = make_score(dim, options)
        self.weights = Weights(options)
        self.record: Callable[[Tensor], object] | None = None
        """Called with the weights [B, h, n, m] of every pass, of packed sets run by run; None records nothing."""

    def forward(
        self,
        X: Float[Tensor, "*queries dim_query"],
        Y: Float[Tensor, "*rows dim_key"],
        mask: Layout | None = None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None = None,
    ) -> Float[Tensor, "*_ d"]:
        """Return what each row of X reads from Y [B, n, d]; X may have a batch of one that serves all of Y.

        A `Packed` in place of `mask` says that Y is packed [N, dim_key]; one in place of `query_mask`, that X is
        packed [N, dim_query], and then the result is packed [N, d]. A mask of X changes nothing here.
        """
        if isinstance(query_mask, Packed) and query_mask.rows:
            runs = zip(query_mask.batches(X), query_mask.batches(Y), strict=True)
            return torch.cat([self(x, y).flatten(0, 1) for x, y in runs if x.shape[1]])
        if plan(self.case(X, Y, mask, query_mask, projected=False)) is Way.FOLDED:
            assert not isinstance(mask, Packed)
            return folded(self, X, zero_padding(Y, mask), mask)
        return self.output(self.attend(self.query(X), Y, mask, query_mask))

    def attend(
        self,
        Q: Float[Tensor, "*queries d"],
        Y: Float[Tensor, "*rows dim_key"],
        mask: Layout | None = None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None = None,
    ) -> Float[Tensor, "*_ d"]:
        """Attention of projected queries Q, before W^O: concat_j(A_j V_j) [B, n, d]; 0 where Y is empty."""
        way = plan(self.case(Q, Y, mask, query_mask))
        if way is Way.RUNS:
            return self._run_by_run(Q, Y, mask, query_mask)
        attended = WAYS[way](self, Q, zero_padding(Y, mask), mask)  # a weight of 0 does not silence a NaN
        return attended if mask is None else attended * non_empty(mask, Y.device)

    def case(
        self, X: Tensor, Y: Tensor, mask: Layout | None, query_mask: Layout | None, *, projected: bool = True
    ) -> Case:
        """What `plan` asks of these rows, X being queries or what they are made of."""
        dim, dim_query = self.query.weight.shape
        is_plain = self.is_plain
        return Case(
            heads=self.heads,
            dim=dim,
            dim_query=dim_query,
            dim_key=self.key.in_features,
            n=None if isinstance(query_mask, Packed) else known(X.shape[1]),
            m=len(Y) // max(1, len(mask)) if isinstance(mask, Packed) else known(Y.shape[1]),
            queries=known(X.shape[0]),
            sets=known(Y.shape[0]),
            packed_queries=isinstance(query_mask, Packed),
            packed_keys=isinstance(mask, Packed),
            linear=isinstance(self.score, DotScore),
            sum_to_one=self.weights.sum_to_one,
            softmax=is_plain,
            recorded=self.record is not None,
            tiles=is_plain and self.record is None and may_tile(self, X, Y),
            cpu=Y.device.type == "cpu",
            output=isinstance(self.output, nn.Linear) and not projected,
        )

    @property
    def is_plain(self) -> bool:
        """True for softmax of a linear score, with nothing dropped."""
        return isinstance(self.score, DotScore) and self.weights.are_softmax

    def split(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Each head's columns."""
        return X.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scored_queries(self, Q: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Queries whose plain products with the keys are the logits of a linear score."""
        assert isinstance(self.score, DotScore)
        return self.score.queries(self.split(Q))

    def scored_keys(self, Y: Float[Tensor, "B m dim_key"]) -> Float[Tensor, "B h m c"]:
        """Keys whose plain products with the queries are the logits of a linear score."""
        assert isinstance(self.score, DotScore)
        return self.score.keys(self.split(self.key(Y)))

    def weigh(self, logits: Float[Tensor, "B h n m"], mask: Tensor | None) -> Float[Tensor, "B h n m"]:
        """The weights, shown to whoever records them."""
        A = self.weights(logits, mask)
        if self.record is not None:
            self.record(A)
        return A

    def _run_by_run(self, Q: Tensor, Y: Tensor, mask: Layout | None, query_mask: Layout | None) -> Tensor:
        sets = query_mask if isinstance(query_mask, Packed) else mask
        assert isinstance(sets, Packed)
        runs = [
            self.attend(q, y) if q.shape[1] and y.shape[1] else q.new_zeros(len(y), *q.shape[1:])
            for q, y in zip(sets.batches(Q), sets.batches(Y), strict=True)
        ]
        return torch.cat([run.flatten(0, 1) for run in runs] if sets is query_mask else runs)


def join(X: Float[Tensor, "B h n c"]) -> Float[Tensor, "B n d"]:
    """concat_j: the heads side by side."""
    return X.transpose(1, 2).flatten(2)


def explicit(
    attention: Multihead, Q: Float[Tensor, "_ n d"], Y: Float[Tensor, "B m dim_key"], mask: Tensor | None
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j) by the formula as it stands."""
    queries, keys, values = (attention.split(part) for part in (Q, attention.key(Y), attention.value(Y)))
    attended, A = attend(queries, keys, values, attention.score, attention.weights, mask)
    if attention.record is not None:
        attention.record(A)
    return join(attended)


def fused(
    attention: Multihead, Q: Float[Tensor, "_ n d"], Y: Float[Tensor, "B m dim_key"], mask: Tensor | None
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j) by torch's kernel for softmax of dot products."""
    keys, values = attention.scored_keys(Y), attention.split(attention.value(Y))
    queries = attention.split(Q).expand(keys.shape[0], -1, -1, -1)
    # An empty set attends to its padding here, and `attend` sets the result to 0: a row of -inf would be NaN.
    keep = None if mask is None else mask[:, None, None, :] | ~non_empty(mask).unsqueeze(-1)
    return join(F.scaled_dot_product_attention(queries, keys, values, keep, scale=1.0))


WAYS: dict[Way, Callable[..., Tensor]] = {
    Way.ABSORBED_IN_TILES: absorbed_in_tiles,
    Way.ABSORBED: absorbed,
    Way.EXPLICIT: explicit,
    Way.FUSED: fused,
}
"""way(attention, Q, Y, mask) -> concat_j(A_j V_j) [B, n, d], where no set is empty and padded rows of Y are 0."""


def known(size: int | torch.SymInt) -> int | None:
    """A size, or None for a symbol of a program that is recorded for all sizes."""
    return size if isinstance(size, int) else None
