"""Multihead attention from one set to another.

    Att(Q, K, V) = A V,  A = weights(score(Q, K)),  by default softmax(Q K^T / sqrt(d))
    Multihead(X, Y, Y) = concat_j(Att(Q_j, K_j, V_j)) W^O,    Q = X W^Q, K = Y W^K, V = Y W^V

`scores` has the score functions, `weights` the weights functions. `fast.kernels` chooses the fastest of several
functions with the same result.

Letters: the queries are computed from X [B, n, .], the keys and values from Y [B, m, .]. The queries have width d, with
h heads of width c = d / h. The mask [B, m] is True at the real rows of Y, False at padding.
Sources: "Attention is all you need" (arXiv 1706.03762, section 3.2); "Set Transformer" (arXiv 1810.00825, eq. 3 to 5).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import RELEASED, check_counts, check_options
from pointset.configuration import AttentionOptions as AttentionOptions
from pointset.errors import quoted
from pointset.inputs import InputError
from pointset.nn.fast.absorbed import Projection
from pointset.nn.fast.kernels import Kernel, choose_kernel
from pointset.nn.masks import non_empty, zero_padded_rows
from pointset.nn.modules import RowsModule
from pointset.nn.scores import SCORES, Score, join_heads, split_heads
from pointset.nn.weights import Weights


def attend(
    Q: Float[Tensor, "_ h n c"],
    K: Float[Tensor, "B h m c"],
    V: Float[Tensor, "B h m e"],
    score: Callable[[Tensor, Tensor], Tensor],
    weights: Callable[[Tensor, Tensor | None], Tensor],
    mask: Bool[Tensor, "B m"] | None = None,
) -> tuple[Float[Tensor, "B h n e"], Float[Tensor, "B h n m"]]:
    """Return A V and A = weights(score(Q, K)), such as softmax(Q K^T / sqrt(d)).

    Args:
        Q, K, V: queries [B, h, n, c] (B is 1 if all sets share them), keys [B, h, m, c] and values [B, h, m, e].
        score: function of queries and keys that returns logits [B, h, n, m].
        weights: function of logits and mask that returns weights [B, h, n, m].
        mask: bool [B, m], True at real keys.

    Returns:
        The product A V, [B, h, n, e], and the weights A, [B, h, n, m].

    Example:
        >>> from pointset.nn.scores import DotScore
        >>> rows = torch.rand(2, 4, 9, 8)
        >>> read, weights = pointset.nn.attend(rows, rows, rows, DotScore(32), pointset.nn.Weights())
        >>> read.shape, weights.shape
        (torch.Size([2, 4, 9, 8]), torch.Size([2, 4, 9, 9]))
    """
    A = weights(score(Q, K), mask)
    return torch.matmul(A, V), A


class Multihead(RowsModule):
    """Multihead(X, Y, Y) = concat_j(weights(score(Q_j, K_j)) V_j) W^O, with Q = X W^Q, K = Y W^K, V = Y W^V.

    The default weights are softmax(Q_j K_j^T / sqrt(d)). The options choose other scores and weights. With the option
    form="reference", W^O is left out, as in the code of the Set Transformer's authors.

    X [B, n, dim_query] and Y [B, m, dim_key], with the mask [B, m] of Y, give [B, n, dim].

    Args:
        dim_query, dim_key, dim: widths of X, of Y and of the result, which is a multiple of the number of heads.
        options: heads, form, score, weights, ...; see `AttentionOptions`.
        changes: keyword arguments that replace fields of `options`.

    Raises:
        InputError: `heads` does not divide `dim`.

    Source:
        Vaswani et al., Attention is all you need (arXiv 1706.03762), section 3.2; Lee et al. (arXiv 1810.00825), eq. 3
        to 5.

    Example:
        >>> attention = pointset.nn.Multihead(3, 5, 16, heads=2)
        >>> attention(torch.rand(2, 7, 3), torch.rand(2, 100, 5)).shape
        torch.Size([2, 7, 16])
    """

    def __init__(
        self, dim_query: int, dim_key: int, dim: int, options: AttentionOptions = RELEASED, **changes: Any
    ) -> None:
        super().__init__()
        options = changed_options(type(self), options, changes)
        check_counts(dim_query=dim_query, dim_key=dim_key, dim=dim)
        self.row_widths = (dim_query, dim_key)
        if dim % options.heads:
            raise InputError(f"dim must be a multiple of heads, got dim={dim} and heads={options.heads}")
        self.heads = options.heads
        self.query = nn.Linear(dim_query, dim)
        self.key = nn.Linear(dim_key, dim)
        self.value = nn.Linear(dim_key, dim)
        self.output: nn.Module = nn.Linear(dim, dim) if options.form == "paper" else nn.Identity()
        self.score = SCORES[options.score](dim, options)
        self.weights = Weights(options)
        self.record: Callable[[Tensor], object] | None = None
        """Function that every forward pass calls with the weights [B, h, n, m], or None."""

    def forward(
        self,
        X: Float[Tensor, "_ n dim_query"],
        Y: Float[Tensor, "B m dim_key"],
        mask: Bool[Tensor, "B m"] | None = None,
    ) -> Float[Tensor, "B n d"]:
        """Return the attention [B, n, d] of X to Y. All sets of Y share an X of batch size 1."""
        return self.output(self.attend(self.query(X), Y, mask))

    def attend(
        self, Q: Float[Tensor, "_ n d"], Y: Float[Tensor, "B m dim_key"], mask: Bool[Tensor, "B m"] | None = None
    ) -> Float[Tensor, "B n d"]:
        """Return concat_j(A_j V_j) [B, n, d] for queries Q, without W^O. It is 0 if Y is empty."""
        kernel = choose_kernel(Q, Y, self.key, self.score, self.weights, self.record is not None, explicit)
        Y = zero_padded_rows(Y, mask)  # a weight 0 times a padded NaN is NaN
        K, V = Projection(Y, self.key), Projection(Y, self.value)
        attended = kernel(Q, K, V, mask, self.score, self._recorded_weights)
        return attended if mask is None else attended * non_empty(mask)

    def _recorded_weights(self, logits: Float[Tensor, "B h n m"], mask: Tensor | None) -> Float[Tensor, "B h n m"]:
        A = self.weights(logits, mask)
        if self.record is not None:
            self.record(A)
        return A


def changed_options(block: type, options: Any, changes: Mapping[str, Any]) -> AttentionOptions:
    """Return `options` with the changed fields. Raise an error for a wrong type or an unknown field."""
    if not isinstance(options, AttentionOptions):
        wrong = f"{quoted(options)}, of type {type(options).__name__}"
        raise InputError(f"options must be AttentionOptions, got {wrong}: give heads, norm, ... by name, as in heads=8")
    if not changes:
        return options
    own = [name for name in inspect.signature(block).parameters if name not in ("options", "changes")]
    names = AttentionOptions.option_names()
    check_options(block.__name__, changes, names, [*own, *names])
    return options.changed(changes)


def explicit(
    Q: Float[Tensor, "_ n d"], K: Projection, V: Projection, mask: Tensor | None, score: Score, weights: Kernel
) -> Float[Tensor, "B n d"]:
    """Return concat_j(A_j V_j), computed step by step as in the formula."""
    queries, keys, values = (split_heads(X, score.heads) for X in (Q, K.product(), V.product()))
    return join_heads(attend(queries, keys, values, score, weights, mask)[0])
