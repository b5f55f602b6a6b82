"""A whole MAB tile by tile, in form "reference" without norms: the rows of each set read a few keys of their set.

    H = Q + concat_j(softmax(Q_j K_j^T) V_j),  Q = X W^Q + b^Q;   O = H + ReLU(H W + b)

The backward pass keeps only H, O and the weights [h, n, m]: Q is H minus the values read, and the ReLU was open where
O > H.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.kernels import FEW_KEYS, is_plain
from pointset.nn.fast.tiles import Scratch, Tile, in_tiles, may_tile, parts_of_sets, softmax_backward
from pointset.nn.scores import join_heads, split_heads


class Keys(NamedTuple):
    """Keys and values of each set."""

    K: Float[Tensor, "B m d"]
    """Scaled keys."""
    V: Float[Tensor, "B m d"]
    """Values."""


class Projections(NamedTuple):
    """The two linear maps of the block, as in torch: y = x W^T + b."""

    query: Float[Tensor, "d d_in"]
    query_bias: Float[Tensor, " d"]
    feed: Float[Tensor, "d d"]
    feed_bias: Float[Tensor, " d"]


def may_write_in_tiles(mab: Any, X: Tensor, Y: Tensor) -> bool:
    """True if many rows X read few keys of their set in a MAB, by plain softmax and without norms."""
    attention = mab.multihead
    if mab.form == "paper" or mab.norm != "none" or attention.record is not None:
        return False
    if not (is_plain(attention.score, attention.weights) and may_tile(X, Y, attention.query.weight)):
        return False
    return len(X) == len(Y) and Y.shape[1] <= min(X.shape[1], FEW_KEYS)  # last: an exporter would take sizes for fixed


def write_in_tiles(mab: Any, X: Float[Tensor, "B n d_in"], Y: Float[Tensor, "B m d_y"]) -> Float[Tensor, "B n d"]:
    """MAB(X, Y) tile by tile."""
    attention, feed = mab.multihead, mab.feed_forward[0]
    K = attention.score.keys(split_heads(attention.key(Y), attention.heads))
    maps = Projections(attention.query.weight, attention.query.bias, feed.weight, feed.bias)
    return write_rows(X, Keys(join_heads(K), attention.value(Y)), maps, attention.heads)


def write_rows(X: Float[Tensor, "B n d_in"], keys: Keys, maps: Projections, heads: int) -> Float[Tensor, "B n d"]:
    """O [B, n, d]; each row reads the m keys of its set."""

    def plain(X: Tensor, K: Tensor, V: Tensor, *maps: Tensor) -> Tensor:
        return write_plainly(X, Keys(K, V), Projections(*maps), heads)

    return in_tiles(partial(_write, heads=heads), partial(_backward, heads=heads), plain, X, *keys, *maps)


def write_plainly(X: Float[Tensor, "B n d_in"], keys: Keys, maps: Projections, heads: int) -> Float[Tensor, "B n d"]:
    """The definition of `write_rows` in plain torch operations; used for second derivatives."""
    Q = X @ maps.query.mT + maps.query_bias
    H = Q + torch.cat([torch.softmax(q @ k.mT, dim=-1) @ v for q, k, v in _heads(heads, Q, *keys)], dim=-1)
    return H + torch.relu(H @ maps.feed.mT + maps.feed_bias)


def _write(X: Tensor, *given: Tensor, keeps: bool, heads: int) -> tuple[Tensor, ...]:
    """The forward pass; keeps H and O [B n, d], and the weights [B n * h * m]."""
    keys, maps = Keys(*given[:2]), Projections(*given[2:])
    (B, n), m = X.shape[:2], keys.K.shape[1]
    rows = X.flatten(0, 1)
    O = rows.new_empty(B * n, len(maps.feed))  # noqa: E741  the papers' letter
    hidden, weights = (torch.empty_like(O), O.new_empty(B * n * heads * m)) if keeps else (O[:0], O[:0])
    attended, fed, scratch = Scratch(O), Scratch(O), Scratch(O)
    for tile in parts_of_sets(B, n, O.shape[1]):
        o, sets = O[tile.rows], tile.sets.stop - tile.sets.start
        if keeps:
            H, A = hidden[tile.rows], _weights(weights, tile, heads, m)
        else:
            H, A = attended(*o.shape), scratch(heads, sets, len(o) // sets, m)
        _attend(rows, keys, maps, tile, H, A)
        torch.add(H, torch.addmm(maps.feed_bias, H, maps.feed.mT, out=fed(*o.shape)).relu_(), out=o)
    return O.unflatten(0, (B, n)), hidden, O, weights


def _attend(X: Tensor, keys: Keys, maps: Projections, tile: Tile, H: Tensor, weights: Tensor) -> None:
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


def _backward(gO: Tensor, for_rows: bool, X: Tensor, *given: Tensor, heads: int) -> tuple[Tensor | None, ...]:
    keys, maps, (hidden, O, weights) = Keys(*given[:2]), Projections(*given[2:6]), given[6:]  # noqa: E741
    (B, n), rows, gO = X.shape[:2], X.flatten(0, 1), gO.flatten(0, 1).contiguous()
    gX = torch.empty_like(rows) if for_rows else None
    gK, gV = (torch.zeros_like(part) for part in keys)
    gWq, gbq, gW, gb = (torch.zeros_like(part) for part in maps)
    fed, attended, scratch = Scratch(gO), Scratch(gO), Scratch(gO)
    for tile in parts_of_sets(B, n, hidden.shape[1]):
        g, H = gO[tile.rows], hidden[tile.rows]
        gT = torch.sub(O[tile.rows], H, out=fed(*H.shape))
        gT.sign_().mul_(g)  # the ReLU was open where O > H
        gW.addmm_(gT.mT, H)
        gb += gT.sum(dim=0)
        gH = torch.addmm(g, gT, maps.feed, out=attended(*H.shape))
        A = _weights(weights, tile, heads, keys.K.shape[1])
        of_sets = [part[tile.sets] for part in (*keys, gK, gV)]
        _attend_backward(A, scratch(*A.shape), gH, H, *of_sets)
        gWq.addmm_(gH.mT, rows[tile.rows])
        gbq += gH.sum(dim=0)
        if gX is not None:
            torch.mm(gH, maps.query, out=gX[tile.rows])
    return None if gX is None else gX.view_as(X), gK, gV, gWq, gbq, gW, gb


def _attend_backward(
    A: Tensor, gA: Tensor, gH: Tensor, H: Tensor, K: Tensor, V: Tensor, gK: Tensor, gV: Tensor
) -> None:
    """Turn the gradient of H [rows, d] into that of Q, in place, and add to the gradients of the keys and values."""
    rows = (part.unflatten(0, (A.shape[1], -1)) for part in (gH, H))
    parts = _heads(len(A), *rows, K, V, gK, gV)
    for a, ga, (gh, _, _, v, _, gv) in zip(A, gA, parts, strict=True):
        torch.bmm(gh, v.mT, out=ga)
        gv += torch.bmm(a.mT, gh)
    gL = softmax_backward(gA, A)
    for a, gl, (gh, h, k, v, gk, _) in zip(A, gL, parts, strict=True):
        gk += torch.bmm(gl.mT, h) - torch.bmm(torch.bmm(gl.mT, a), v)  # Q = H - A V
        _add_product(gh, gl, k)
