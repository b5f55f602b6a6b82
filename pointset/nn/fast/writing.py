"""A whole MAB tile by tile, in form "reference" without norms: the rows of each set read a few keys of their set.

    H = Q + concat_j(softmax(Q_j K_j^T) V_j),  Q = X W^Q + b^Q;   O = H + ReLU(H W + b)

The backward pass keeps only H, O and the weights [h, n, m]: Q is H minus the values read, and the ReLU was open where
O > H.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.tiles import Scratch, Tile, by_set, parts_of_sets, second_derivatives
from pointset.nn.fast.torch_private import relu_backward, softmax_backward


class Keys(NamedTuple):
    """Keys and values of each set."""

    K: Float[Tensor, "B m d"]
    """Scaled keys."""
    V: Float[Tensor, "B m d"]
    """Values."""


class Maps(NamedTuple):
    """The two linear maps of the block, as in torch: y = x W^T + b."""

    query: Float[Tensor, "d d_in"]
    query_bias: Float[Tensor, " d"]
    feed: Float[Tensor, "d d"]
    feed_bias: Float[Tensor, " d"]


def write_rows(
    X: Float[Tensor, "N d_in"], keys: Keys, maps: Maps, heads: int, lengths: Sequence[int]
) -> Float[Tensor, "N d"]:
    """O [N, d] for the rows of B concatenated sets; each row reads the m keys of its own set."""
    if torch.is_grad_enabled() and any(part.requires_grad for part in (X, *keys, *maps)):
        return _Write.apply(X, *keys, *maps, heads, lengths)
    return _write(X, keys, maps, heads, lengths)


def write_plainly(
    X: Float[Tensor, "N d_in"], keys: Keys, maps: Maps, heads: int, lengths: Sequence[int]
) -> Float[Tensor, "N d"]:
    """The definition of `write_rows` in plain torch operations, set by set; used for second derivatives."""
    H = []
    for x, K, V in zip(X.split(lengths), *keys, strict=True):
        Q = x @ maps.query.mT + maps.query_bias
        parts = _heads(heads, Q, K, V)
        H.append(Q + torch.cat([torch.softmax(q @ k.mT, dim=-1) @ v for q, k, v in parts], dim=-1))
    rows = torch.cat(H)
    return rows + torch.relu(rows @ maps.feed.mT + maps.feed_bias)


def _write(
    X: Tensor, keys: Keys, maps: Maps, heads: int, lengths: Sequence[int], kept: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """The forward pass; writes H and the weights to `kept`, [N, d] and [N * h * m], if it is given."""
    O = X.new_empty(len(X), len(maps.feed))  # noqa: E741  the papers' letter
    attended, fed, scratch = Scratch(X), Scratch(X), Scratch(X)
    for tile in parts_of_sets(lengths, O.shape[1]):
        o = O[tile.rows]
        if kept is None:
            H, weights = attended(*o.shape), scratch(heads, *by_set(O, tile).shape[:2], keys.K.shape[1])
        else:
            H, weights = kept[0][tile.rows], _weights(kept[1], tile, heads, keys.K.shape[1])
        _attend(X, keys, maps, tile, H, weights)
        torch.add(H, torch.addmm(maps.feed_bias, H, maps.feed.mT, out=fed(*o.shape)).relu_(), out=o)
    return O


def _attend(X: Tensor, keys: Keys, maps: Maps, tile: Tile, H: Tensor, weights: Tensor) -> None:
    """Fill H [rows, d] and the weights [h, sets, n, m] of a tile."""
    torch.addmm(maps.query_bias, X[tile.rows], maps.query.mT, out=H)
    rows = H.unflatten(0, (weights.shape[1], -1))
    parts = _heads(len(weights), rows, keys.K[tile.sets], keys.V[tile.sets])
    for A, (Q, K, _) in zip(weights, parts, strict=True):
        torch.bmm(Q, K.mT, out=A)
    torch.softmax(weights, dim=-1, out=weights)
    for A, (Q, _, V) in zip(weights, parts, strict=True):
        _add_product(Q, A, V)


def _add_product(out: Tensor, A: Tensor, B: Tensor) -> None:
    """Add the batched product A B to `out`, which may be columns of a wider tensor."""
    # `baddbmm_` into such columns calls one product per set, which takes a fifth of a training step when sets have ten
    # rows. A separate product and sum need one more pass over memory, which matters for large sets, of which a tile
    # has one or two.
    if len(out) > 2:
        out += torch.bmm(A, B)
    else:
        out.baddbmm_(A, B)


def _heads(heads: int, *parts: Tensor) -> list[tuple[Tensor, ...]]:
    """Views of the columns of each head."""
    return list(zip(*(part.chunk(heads, dim=-1) for part in parts), strict=True))


def _weights(kept: Tensor, tile: Tile, heads: int, keys: int) -> Tensor:
    """The weights of a tile, a view [h, sets, n, m] of `kept`."""
    size = heads * keys
    return kept[tile.rows.start * size : tile.rows.stop * size].view(heads, tile.sets.stop - tile.sets.start, -1, keys)


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, *rest: Any) -> Tensor:
        keys, maps, (heads, lengths) = Keys(*rest[:2]), Maps(*rest[2:6]), rest[6:]
        H, kept = X.new_empty(len(X), len(maps.feed)), X.new_empty(len(X) * heads * keys.K.shape[1])
        O = _write(X, keys, maps, heads, lengths, (H, kept))  # noqa: E741
        ctx.save_for_backward(X, *keys, *maps, H, O, kept)
        ctx.heads, ctx.lengths = heads, lengths
        return O

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        X, K, V, *maps, H, O, kept = ctx.saved_tensors  # noqa: E741
        if torch.is_grad_enabled():  # for second derivatives
            rest = {"heads": ctx.heads, "lengths": ctx.lengths}
            plain = lambda X, K, V, *maps: write_plainly(X, Keys(K, V), Maps(*maps), **rest)  # noqa: E731
            return (*second_derivatives(ctx, plain, (X, K, V, *maps), gradients[0]), None, None)
        state = _Forward(X, Keys(K, V), Maps(*maps), H, O, kept, ctx.heads, ctx.lengths)
        return (*_backward(gradients[0].contiguous(), state, ctx.needs_input_grad[0]), None, None)


class _Forward(NamedTuple):
    """What the forward pass keeps for the backward pass."""

    X: Tensor
    keys: Keys
    maps: Maps
    H: Tensor
    O: Tensor  # noqa: E741
    weights: Tensor
    heads: int
    lengths: Sequence[int]


def _backward(gO: Tensor, done: _Forward, for_rows: bool) -> tuple[Tensor | None, ...]:
    gX = torch.empty_like(done.X) if for_rows else None
    gK, gV = (torch.zeros_like(part) for part in done.keys)
    gWq, gbq, gW, gb = (torch.zeros_like(part) for part in done.maps)
    fed, attended, weights = Scratch(gO), Scratch(gO), Scratch(gO)
    for tile in parts_of_sets(done.lengths, done.H.shape[1]):
        g, H = gO[tile.rows], done.H[tile.rows]
        gT = torch.sub(done.O[tile.rows], H, out=fed(*H.shape))
        relu_backward(g, gT)
        gW.addmm_(gT.mT, H)
        gb += gT.sum(dim=0)
        gH = torch.addmm(g, gT, done.maps.feed, out=attended(*H.shape))
        _attend_backward(gH, gK[tile.sets], gV[tile.sets], tile, done, weights)
        gWq.addmm_(gH.mT, done.X[tile.rows])
        gbq += gH.sum(dim=0)
        if gX is not None:
            torch.mm(gH, done.maps.query, out=gX[tile.rows])
    return gX, gK, gV, gWq, gbq, gW, gb


def _attend_backward(gH: Tensor, gK: Tensor, gV: Tensor, tile: Tile, done: _Forward, scratch: Scratch) -> None:
    """Turn the gradient of H [rows, d] into that of Q, in place, and add to the gradients of the keys and values."""
    A = _weights(done.weights, tile, done.heads, gK.shape[1])
    sets = A.shape[1]
    rows = (part.unflatten(0, (sets, -1)) for part in (gH, done.H[tile.rows]))
    parts = _heads(done.heads, *rows, done.keys.K[tile.sets], done.keys.V[tile.sets], gK, gV)
    gA = scratch(*A.shape)
    for a, ga, (gh, _, _, V, _, gv) in zip(A, gA, parts, strict=True):
        torch.bmm(gh, V.mT, out=ga)
        gv += torch.bmm(a.mT, gh)
    gL = softmax_backward(gA, A)
    for a, gl, (gh, h, K, V, gk, _) in zip(A, gL, parts, strict=True):
        gk += torch.bmm(gl.mT, h) - torch.bmm(torch.bmm(gl.mT, a), V)  # Q = H - A V
        _add_product(gh, gl, K)
