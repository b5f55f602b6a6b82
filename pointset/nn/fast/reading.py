"""S = softmax(F X^T) X tile by tile: a few queries F, shared by all sets, read the rows X of each set.

It is the core of absorbed attention (`absorbed`). Its backward pass keeps only the weights [q, n] of each set.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.tiles import Scratch, Tile, by_set, second_derivatives, whole_sets
from pointset.nn.fast.torch_private import softmax_backward


def read_sets(
    X: Float[Tensor, "N d"],
    F: Float[Tensor, "q d"],
    lengths: Sequence[int],
    keep: Bool[Tensor, " N"] | None = None,
) -> Float[Tensor, "B q d"]:
    """S of each of B concatenated sets; 0 for an empty set.

    Args:
        X: rows of all sets, finite also where they are padding.
        F: scaled queries.
        lengths: number of rows of each set.
        keep: True at real rows; None if all are real.
    """
    if torch.is_grad_enabled() and (X.requires_grad or F.requires_grad):
        return _Read.apply(X, F, lengths, keep)
    return _read(X, F, lengths, keep, None)


def read_plainly(
    X: Float[Tensor, "N d"], F: Float[Tensor, "q d"], lengths: Sequence[int], keep: Bool[Tensor, " N"] | None = None
) -> Float[Tensor, "B q d"]:
    """The definition of `read_sets` in plain torch operations, set by set; used for second derivatives."""
    keeps = [None] * len(lengths) if keep is None else keep.split(lengths)
    return torch.stack([_read_plainly(x, F, k) for x, k in zip(X.split(lengths), keeps, strict=True)])


def _read_plainly(X: Tensor, F: Tensor, keep: Tensor | None) -> Tensor:
    logits = F @ X.mT
    if keep is None:
        return torch.softmax(logits, dim=1) @ X
    return (torch.softmax(logits.masked_fill(~keep, _lowest(X)), dim=1) * keep) @ X


def _lowest(X: Tensor) -> float:
    return torch.finfo(X.dtype).min


def _read(X: Tensor, F: Tensor, lengths: Sequence[int], keep: Tensor | None, kept: Tensor | None) -> Tensor:
    """The forward pass; writes the weights to `kept` [N * q] if it is given."""
    q, width = F.shape
    S = X.new_zeros(len(lengths), q, width)
    scratch = Scratch(X)
    for tile in whole_sets(lengths, max(F.shape)):
        x = by_set(X, tile)
        logits = torch.bmm(F.expand(len(x), -1, -1), x.mT, out=scratch(len(x), q, x.shape[1]))
        if keep is not None:
            real = by_set(keep, tile)[:, None]
            logits.masked_fill_(~real, _lowest(X))
        weights = logits if kept is None else _weights(kept, tile, q)
        torch.softmax(logits, dim=2, out=weights)
        if keep is not None:
            weights.mul_(real)
        torch.bmm(weights, x, out=S[tile.sets])
    return S


def _weights(kept: Tensor, tile: Tile, q: int) -> Tensor:
    """The weights of a tile, a view [sets, q, n] of `kept`."""
    return kept[tile.rows.start * q : tile.rows.stop * q].view(tile.sets.stop - tile.sets.start, q, -1)


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, F: Tensor, lengths: Sequence[int], keep: Tensor | None) -> Tensor:
        weights = X.new_empty(X.shape[0] * F.shape[0])
        S = _read(X, F, lengths, keep, weights)
        ctx.save_for_backward(X, F, keep, weights)
        ctx.lengths = lengths
        return S

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        X, F, keep, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives
            plain = partial(read_plainly, lengths=ctx.lengths, keep=keep)
            return (*second_derivatives(ctx, plain, (X, F), gradients[0]), None, None)
        return (*_read_backward(gradients[0], X, F, weights, ctx.lengths, ctx.needs_input_grad[0]), None, None)


def _read_backward(
    gS: Tensor, X: Tensor, F: Tensor, kept: Tensor, lengths: Sequence[int], for_rows: bool
) -> tuple[Tensor | None, Tensor]:
    gF = torch.zeros_like(F)
    gX = torch.empty_like(X) if for_rows else None
    scratch = Scratch(X)
    for tile in whole_sets(lengths, max(F.shape)):
        x, weights, g = by_set(X, tile), _weights(kept, tile, len(F)), gS[tile.sets]
        g_weights = torch.bmm(g, x.mT, out=scratch(*weights.shape))
        g_logits = softmax_backward(g_weights, weights)
        gF += torch.bmm(g_logits, x).sum(dim=0)
        if gX is not None:
            gx = torch.bmm(weights.mT, g, out=by_set(gX, tile))
            gx.baddbmm_(g_logits.mT, F.expand(len(x), -1, -1))
    return gX, gF
