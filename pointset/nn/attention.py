"""Multihead attention from one set to another, with its weights as a value when somebody asks for them.

    Att(Q, K, V; score, weights) = weights(score(Q, K)) V

Scores are in `scores`, weights in `weights`; scaled dot products and softmax have the fast ways.

Letters: X [B, n, .] asks, Y [B, m, .] answers, h heads, width d, c = d / h per head; mask [B, m] is True at the real
rows of Y. Either may also be rows [N, .] of sets of several sizes, with a `Packed` that tells them apart.
Sources: "Attention is all you need" (arXiv 1706.03762, section 3.2); "Set Transformer" (arXiv 1810.00825, eq. 2 to 4).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, AttentionOptions
from pointset.nn.fast.fusing import may_fuse
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.fast.reading import read_sets
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


class Multihead(nn.Module):
    """Multihead(X, Y, Y) = concat_j(softmax(Q_j K_j^T s) V_j) W^O, with Q = X W^Q, K = Y W^K, V = Y W^V.

    That is Att of every head with the dot product as `score` and softmax as `weights`; the options name others
    (`pointset.nn.scores`, `pointset.nn.weights`). Form "reference" has no W^O.

    One value has up to four ways of being computed, equal to rounding: projected keys with
    `scaled_dot_product_attention`; the same with explicit weights, taken for all but softmax of linear scores and
    while `record` is a function (it is called with the weights [B, h, n, m], of packed sets run by run); *absorbed*,
    when the queries are few: by associativity (Q_j (Y W^K_j)^T = (Q_j W^K_j^T) Y^T, A_j (Y W^V_j) = (A_j Y) W^V_j) Y
    is attended as it is and never projected; and *folded*, when the keys are few and W^O follows, likewise for X. The
    cheapest is taken, by counting operations.
    """

    def __init__(
        self,
        dim_query: int,
        dim_key: int,
        dim: int,
        options: AttentionOptions = RELEASED,
    ) -> None:
        super().__init__()
        self.heads = options.heads
        self.query = nn.Linear(dim_query, dim)
        self.key = nn.Linear(dim_key, dim)
        self.value = nn.Linear(dim_key, dim)
        self.output = nn.Linear(dim, dim) if options.form == "paper" else nn.Identity()
        self.score = make_score(dim, options)
        self.weights = Weights(options)
        self.record: Callable[[Tensor], object] | None = None

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
        if not isinstance(mask, Packed) and self._folding_is_cheaper(X, Y, query_mask):
            return self._folded(X, Y, mask)
        return self.output(self.attend(self.query(X), Y, mask, query_mask))

    def attend(
        self,
        Q: Float[Tensor, "*queries d"],
        Y: Float[Tensor, "*rows dim_key"],
        mask: Layout | None = None,
        query_mask: Bool[Tensor, "*queries"] | Packed | None = None,
    ) -> Float[Tensor, "*_ d"]:
        """Attention of projected queries Q, before W^O: concat_j(A_j V_j) [B, n, d]; 0 where Y is empty."""
        if isinstance(query_mask, Packed):
            return torch.cat([attended.flatten(0, 1) for attended in self._run_by_run(Q, Y, query_mask)])
        if isinstance(mask, Packed):
            if self._reads_at_once(Q, Y, mask):
                return self._absorbed(Q, Y, mask) * mask.non_empty(Y.device)
            return torch.cat(self._run_by_run(Q, Y, mask))
        Y = zero_padding(Y, mask)  # a weight of 0 does not silence a NaN
        few = Y.shape[1] <= FEW_KEYS and Y.device.type == "cpu"
        if self._absorbing_is_cheaper(Q.shape[1], Y.shape[1]):
            attended = self._absorbed(Q, Y, mask)
        elif few or self.record is not None or not self.is_plain:
            attended = self._explicit(Q, Y, mask)
        else:
            attended = self._fused(Q, Y, mask)
        return attended if mask is None else attended * non_empty(mask)

    def _run_by_run(self, Q: Tensor, Y: Tensor, sets: Packed) -> list[Tensor]:
        """The same for plain batches of sets of one size, of which Q or Y or both are packed."""
        return [
            self.attend(q, y) if q.shape[1] and y.shape[1] else q.new_zeros(len(y), *q.shape[1:])
            for q, y in zip(sets.batches(Q), sets.batches(Y), strict=True)
        ]

    def _reads_at_once(self, Q: Tensor, Y: Tensor, sets: Packed) -> bool:
        cheaper = self._absorbing_is_cheaper(Q.shape[1], len(Y) // max(1, len(sets)))
        return cheaper and Q.shape[0] == 1 and self.is_plain and self.record is None and may_fuse(self, Q, Y)

    @property
    def is_plain(self) -> bool:
        """Whether this is softmax of a linear score and nothing is dropped."""
        return isinstance(self.score, DotScore) and self.weights.are_softmax

    def _absorbing_is_cheaper(self, n: int, m: int) -> bool:
        """Compare the multiply-adds of one set, where the order of the products may be changed."""
        if not (isinstance(self.score, DotScore) and self.weights.sum_to_one):
            return False
        dim, dim_key = self.key.weight.shape
        projected = 2 * m * dim_key * dim + 2 * n * m * dim
        absorbed = 2 * n * dim_key * dim + 2 * self.heads * n * m * dim_key
        return absorbed < projected

    def _folding_is_cheaper(self, X: Tensor, Y: Tensor, query_mask: Layout | None) -> bool:
        """Compare the multiply-adds of one set, where W^O follows and the few keys are each set's own."""
        if isinstance(query_mask, Packed) or X.shape[0] != Y.shape[0]:
            return False
        if not isinstance(self.output, nn.Linear) or not isinstance(self.score, DotScore):
            return False
        n, m = X.shape[1], Y.shape[1]
        dim, dim_query = self.query.weight.shape
        plain = n * (dim_query * dim + 2 * m * dim + dim * dim)
        return (n * self.heads * m + m * dim) * (dim_query + dim) < plain

    def _folded(self, X: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
        """Many rows read few keys, W^Q and W^O moved to the keys: neither queries nor what was read is ever projected.

        (X W^Q_j + b_j) K_j^T = X (W^Q_j K_j^T) + b_j K_j^T,  A_j V_j W^O_j = A_j (V_j W^O_j).
        """
        Y = zero_padding(Y, mask)
        assert isinstance(self.output, nn.Linear)
        assert isinstance(self.score, DotScore)
        keys, values = self.score.keys(self._split(self.key(Y))), self._split(self.value(Y))
        query, output = (W.unflatten(0, (self.heads, -1)) for W in (self.query.weight, self.output.weight.mT))
        folded = torch.matmul(keys, query).flatten(1, 2)  # [B, h * m, dim_query]
        shift = torch.matmul(keys, self.query.bias.view(self.heads, -1, 1)).mT  # [B, h, 1, m]
        logits = torch.matmul(X, folded.mT).unflatten(-1, (self.heads, -1)).transpose(1, 2) + shift
        weights = self._recorded(self.weights(logits, mask))
        written = torch.matmul(values, output).flatten(1, 2)  # [B, h * m, d]
        return torch.matmul(weights.transpose(1, 2).flatten(2), written) + self.output.bias

    def absorbed_queries(self, Q: Float[Tensor, "_ n d"]) -> Float[Tensor, "_ h n dim_key"]:
        """What the rows of Y themselves, not projected, are multiplied by to make the logits, to a constant per row.

        Of a linear score: Q_j S_j W^K_j^T. The key bias adds one constant to each row of logits, and all weights here
        are the same when a constant is added to a row.
        """
        assert isinstance(self.score, DotScore)
        key = self.key.weight.unflatten(0, (self.heads, -1))  # [h, c, dim_key]
        return torch.einsum("bhnc,hcy->bhny", self.score.queries(self._split(Q)), key)

    def absorbed_values(self, read: Float[Tensor, "B h n dim_key"]) -> Float[Tensor, "B n d"]:
        """concat_j(A_j V_j) of what was read from the rows of Y themselves, A_j Y; rows of A_j sum to 1."""
        value = self.value.weight.unflatten(0, (self.heads, -1))
        return torch.einsum("bhny,hcy->bnhc", read, value).flatten(2) + self.value.bias

    def scored_keys(self, Y: Float[Tensor, "B m dim_key"]) -> Float[Tensor, "B m d"]:
        """Keys whose plain products with the queries, head by head, are the logits of a linear score."""
        assert isinstance(self.score, DotScore)
        return self._join(self.score.keys(self._split(self.key(Y))))

    def _absorbed(self, Q: Tensor, Y: Tensor, mask: Layout | None) -> Tensor:
        read = self._read(self.absorbed_queries(Q).flatten(1, 2), Y, mask)
        return self.absorbed_values(read.unflatten(1, (self.heads, Q.shape[1])))

    def _read(self, queries: Tensor, Y: Tensor, mask: Layout | None) -> Tensor:
        """What folded queries [_, h * n, dim_key] read from Y itself, [B, h * n, dim_key]."""
        if isinstance(mask, Packed):
            return read_sets(Y, queries[0], mask.lengths)
        if queries.shape[0] == 1 and self.is_plain and self.record is None and may_fuse(self, queries, Y):
            lengths = [Y.shape[1]] * Y.shape[0]
            return read_sets(Y.flatten(0, 1), queries[0], lengths, None if mask is None else mask.flatten())
        logits = torch.matmul(queries, Y.mT).unflatten(1, (self.heads, -1))  # [B, h, n, m]
        weights = self._recorded(self.weights(logits, mask))
        return torch.matmul(weights.flatten(1, 2), Y)

    def _explicit(self, Q: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
        queries, keys, values = (self._split(part) for part in (Q, self.key(Y), self.value(Y)))
        attended, weights = attend(queries, keys, values, self.score, self.weights, mask)
        self._recorded(weights)
        return self._join(attended)

    def _fused(self, Q: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
        assert isinstance(self.score, DotScore)
        queries, keys, values = (self._split(part) for part in (Q, self.key(Y), self.value(Y)))
        queries = queries.expand(keys.shape[0], -1, -1, -1)
        # An empty set attends to its padding here, and `attend` sets the result to 0: a row of -inf would be NaN.
        keep = None if mask is None else mask[:, None, None, :] | ~non_empty(mask).unsqueeze(-1)
        return self._join(F.scaled_dot_product_attention(queries, self.score.keys(keys), values, keep, scale=1.0))

    def _split(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        return X.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _join(self, X: Float[Tensor, "B h n c"]) -> Float[Tensor, "B n d"]:
        return X.transpose(1, 2).flatten(2)

    def _recorded(self, weights: Tensor) -> Tensor:
        if self.record is not None:
            self.record(weights)
        return weights
