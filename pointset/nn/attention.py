"""Multihead attention from one set to another.

    Att(Q, K, V; score, weights) = weights(score(Q, K)) V
    Multihead(X, Y, Y) = concat_j(Att(Q_j, K_j, V_j)) W^O,    Q = X W^Q, K = Y W^K, V = Y W^V

Scores are in `scores`, weights in `weights`; weights can be any function (`own_weights`). The result can be computed in
several ways: `fast.plan` chooses the cheapest. `fast` has those whose order of operations differs from the formula.

Letters: X [B, n, .] gives the queries, Y [B, m, .] the keys and values, h heads, width d, c = d / h per head; mask
[B, m] is True at the real rows of Y. X and Y can also be packed rows [N, .] of sets of several sizes, with a `Packed`.
Sources: "Attention is all you need" (arXiv 1706.03762, section 3.2); "Set Transformer" (arXiv 1810.00825, eq. 3 to 5).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions, Count
from pointset.inputs import InputError, takes
from pointset.nn.fast.absorbed import absorbed, absorbed_in_tiles
from pointset.nn.fast.additive import additive, additive_absorbed
from pointset.nn.fast.folded import folded
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.fast.parts import HiddenLayer
from pointset.nn.fast.plan import Case, Way, known, plan
from pointset.nn.fast.tiles import may_tile
from pointset.nn.masks import non_empty, zero_padding
from pointset.nn.rows import check_callable, check_heads, check_rows, check_sets
from pointset.nn.scores import AdditiveScore, DotScore, Score, make_score
from pointset.nn.weights import Weights


def attend(
    Q: Float[Tensor, "_ h n c"],
    K: Float[Tensor, "B h m c"],
    V: Float[Tensor, "B h m e"],
    score: Score,
    weights: Weights,
    mask: Bool[Tensor, "B m"] | None = None,
) -> tuple[Float[Tensor, "B h n e"], Float[Tensor, "B h n m"]]:
    """Att(Q, K, V; score, weights), and the weights; the mask is True at real keys.

    Args:
        Q: queries [B, h, n, c], or [1, h, n, c] for all sets.
        K: keys [B, h, m, c].
        V: values [B, h, m, e].
        score: function of queries and keys that returns logits [B, h, n, m].
        weights: function of logits and mask that returns weights [B, h, n, m].
        mask: bool [B, m], True at real keys.

    Returns:
        The values read, [B, h, n, e], and the weights, [B, h, n, m].

    Example:
        >>> from pointset.nn.scores import DotScore
        >>> rows = torch.rand(2, 4, 9, 8)
        >>> read, weights = pointset.nn.attend(rows, rows, rows, DotScore(32, 4), pointset.nn.Weights())
        >>> read.shape, weights.shape
        (torch.Size([2, 4, 9, 8]), torch.Size([2, 4, 9, 9]))
    """
    check_heads(Q, K, V)
    check_callable(score=score, weights=weights)
    A = weights(score(Q, K), mask)
    return torch.matmul(A, V), A


class Multihead(nn.Module):
    """Multihead(X, Y, Y) = concat_j(weights(score(Q_j, K_j)) V_j) W^O, with Q = X W^Q, K = Y W^K, V = Y W^V.

    The default weights are softmax(Q_j K_j^T / sqrt(d)); the options choose other scores and weights. Form "reference"
    has no W^O.

    X [B, n, dim_query] and Y [B, m, dim_key] with its mask [B, m] give [B, n, dim].

    Args:
        dim_query: width of the rows of X.
        dim_key: width of the rows of Y.
        dim: width d of the result, a multiple of the heads.
        options: heads, form, score and weights.

    Raises:
        InputError: heads does not divide dim.

    Source:
        Vaswani et al., Attention is all you need (arXiv 1706.03762), section 3.2; Lee et al. (arXiv 1810.00825), eq. 3
        to 5.

    Example:
        >>> attention = pointset.nn.Multihead(3, 5, 16)
        >>> attention(torch.rand(2, 7, 3), torch.rand(2, 100, 5)).shape
        torch.Size([2, 7, 16])
    """

    @takes(dim_query=Count, dim_key=Count, dim=Count, options=AttentionOptions)
    def __init__(self, dim_query: int, dim_key: int, dim: int, options: AttentionOptions = RELEASED) -> None:
        super().__init__()
        if dim % options.heads:
            raise InputError(f"dim must be a multiple of heads, got dim={dim} and heads={options.heads}")
        self.heads = options.heads
        self.query = nn.Linear(dim_query, dim)
        self.key = nn.Linear(dim_key, dim)
        self.value = nn.Linear(dim_key, dim)
        self.output: nn.Module = nn.Linear(dim, dim) if options.form == "paper" else nn.Identity()
        self.score = make_score(dim, options)
        self.weights = Weights(options)
        self.record: Callable[[Tensor], object] | None = None
        """Called with the weights [B, h, n, m] of every forward pass, for packed sets once per run; None: not called.
        """

    def forward(
        self,
        X: Float[Tensor, "*queries dim_query"],
        Y: Float[Tensor, "*rows dim_key"],
        mask: Layout | None = None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None = None,
    ) -> Float[Tensor, "*_ d"]:
        """Return what each row of X reads from Y, [B, n, d]; X may have batch size 1, shared by all sets of Y.

        With a `Packed` as `mask`, Y is packed [N, dim_key]; with a `Packed` as `query_mask`, X is packed
        [N, dim_query], and so is the result [N, d]. A plain mask of X has no effect here.
        """
        check_rows(X, query_mask, self.query.weight)
        check_rows(Y, mask, self.key.weight, "Y")
        check_sets(X, Y)
        if isinstance(query_mask, Packed) and query_mask.rows:
            runs = zip(query_mask.batches(X), query_mask.batches(Y), strict=True)
            return torch.cat([self(x, y).flatten(0, 1) for x, y in runs if x.shape[1]])
        if plan(self.case(X, Y, mask, query_mask, projected=False)) is Way.FOLDED:
            assert not isinstance(mask, Packed)
            return folded(self, X, zero_padding(Y, mask), mask)
        return self.output(self.attend(self.query(X), Y, mask, query_mask, X))

    def attend(
        self,
        Q: Float[Tensor, "*queries d"],
        Y: Float[Tensor, "*rows dim_key"],
        mask: Layout | None = None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None = None,
        X: Float[Tensor, "*queries dim_query"] | None = None,
    ) -> Float[Tensor, "*_ d"]:
        """Attention of projected queries Q, before W^O: concat_j(A_j V_j) [B, n, d]; 0 where Y is empty.

        X, if given, are the rows of which Q is the projection. A score that maps the queries again then multiplies the
        two maps, and applies their product to X.
        """
        way = plan(self.case(Q, Y, mask, query_mask))
        if way is Way.RUNS:
            return self._run_by_run(Q, Y, mask, query_mask)
        Y = zero_padding(Y, mask)  # 0 times NaN would be NaN
        attended = ADDITIVE_WAYS[way](self, Q, Y, mask, X) if way in ADDITIVE_WAYS else WAYS[way](self, Q, Y, mask)
        return attended if mask is None else attended * non_empty(mask, Y.device)

    def case(
        self,
        X: Tensor,
        Y: Tensor,
        mask: Layout | None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None,
        *,
        projected: bool = True,
    ) -> Case:
        """The input of `plan` for these rows; X are the queries, or the rows of which they are the projection."""
        query, weights = self.query, self.weights
        linear = isinstance(self.score, DotScore)
        softmax = linear and weights.are_softmax
        sets = mask if isinstance(mask, Packed) else None
        return Case(
            heads=self.heads,
            dim=query.out_features,
            dim_query=query.in_features,
            dim_key=self.key.in_features,
            n=None if isinstance(query_mask, Packed) else known(X.shape[1]),
            m=known(Y.shape[1]) if sets is None else len(Y) // max(1, len(sets)),
            queries=known(X.shape[0]),
            sets=known(Y.shape[0]),
            packed_queries=isinstance(query_mask, Packed),
            packed_keys=sets is not None,
            linear=linear,
            sum_to_one=weights.sum_to_one,
            softmax=softmax,
            recorded=self.record is not None,
            tiles=softmax and self.record is None and may_tile(self, X, Y),
            additive=isinstance(self.score, AdditiveScore) and not len(self.score.hidden) and may_tile(self, X, Y),
            cpu=Y.device.type == "cpu",
            rounded=_rounds(Y),
            output=isinstance(self.output, nn.Linear) and not projected,
        )

    @property
    def is_plain(self) -> bool:
        """True for softmax of a linear score, without dropout."""
        return isinstance(self.score, DotScore) and self.weights.are_softmax

    def split(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Split the columns by head."""
        return X.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def scored_queries(self, Q: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Queries whose plain products with the keys are the logits of a linear score."""
        assert isinstance(self.score, DotScore)
        return self.score.queries(self.split(Q))

    def scored_keys(self, Y: Float[Tensor, "B m dim_key"]) -> Float[Tensor, "B h m c"]:
        """Keys whose plain products with the queries are the logits of a linear score."""
        assert isinstance(self.score, DotScore)
        return self.score.keys(self.split(self.key(Y)))

    def hidden_layer(self) -> HiddenLayer:
        """The layers of an additive score with one hidden layer."""
        assert isinstance(self.score, AdditiveScore)
        return self.score.hidden_layer()

    def weigh(self, logits: Float[Tensor, "B h n m"], mask: Tensor | None) -> Float[Tensor, "B h n m"]:
        """Compute the weights, and pass them to `record` if it is set."""
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


def _rounds(Y: Tensor) -> bool:
    """True if products with Y are computed in bfloat16, because Y is, or because of mixed precision."""
    device = Y.device.type
    mixed = torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) is torch.bfloat16
    return Y.dtype is torch.bfloat16 or (mixed and Y.dtype is torch.float32)


def join(X: Float[Tensor, "B h n c"]) -> Float[Tensor, "B n d"]:
    """concat_j: concatenate the heads."""
    return X.transpose(1, 2).flatten(2)


def explicit(
    attention: Multihead, Q: Float[Tensor, "_ n d"], Y: Float[Tensor, "B m dim_key"], mask: Tensor | None
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j), computed as in the formula."""
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
    # An empty set attends to its padding (a row of -inf would give NaN); `Multihead.attend` then sets its result to 0.
    keep = None if mask is None else mask[:, None, None, :] | ~non_empty(mask).unsqueeze(-1)
    return join(F.scaled_dot_product_attention(queries, keys, values, keep, scale=1.0))


WAYS: dict[Way, Callable[..., Tensor]] = {
    Way.ABSORBED_IN_TILES: absorbed_in_tiles,
    Way.ABSORBED: absorbed,
    Way.EXPLICIT: explicit,
    Way.FUSED: fused,
}
"""way(attention, Q, Y, mask) -> concat_j(A_j V_j) [B, n, d]. Padded rows of Y must be 0; results of empty sets are not
defined."""
ADDITIVE_WAYS: dict[Way, Callable[..., Tensor]] = {
    Way.ADDITIVE: additive,
    Way.ADDITIVE_ABSORBED: additive_absorbed,
}
"""way(attention, Q, Y, mask, X), with X the rows of which Q is the projection, or None."""
