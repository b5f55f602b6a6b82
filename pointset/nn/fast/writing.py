"""Tile by tile, a whole MAB of form "reference" (see `blocks`) without norms, whose rows X attend to few keys.

    H = Q + concat_j(softmax(Q_j K_j^T) V_j),  Q = X W^Q + b^Q;   O = H + ReLU(H W + b)

The functions take the rows X [B, n, d_in], the scaled keys K and the values V [B, m, d] of each set, and the weights
and biases of two linear layers of torch: Wq [d, d_in], bq, W [d, d] and b. Only H, O and the weights A [h, n, m] are
kept for the backward pass, because Q is H - A V, and the ReLU is positive where O > H.
"""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.kernels import FEW_KEYS, is_plain
from pointset.nn.fast.tiles import Scratch, in_tiles, may_tile, parts_of_sets, softmax_backward
from pointset.nn.scores import join_heads, split_heads


def may_write_in_tiles(mab: Any, X: Tensor, Y: Tensor) -> bool:
    """Return True if many rows X attend to few keys of their set in a MAB, by plain softmax and without norms."""
    attention = mab.multihead
    if mab.form == "paper" or mab.norm != "none" or attention.record is not None:
        return False
    if not (is_plain(attention.score, attention.weights) and may_tile(X, Y, attention.query.weight)):
        return False
    return len(X) == len(Y) and Y.shape[1] <= min(X.shape[1], FEW_KEYS)  # last, as it fixes the sizes in an export


def write_in_tiles(mab: Any, X: Float[Tensor, "B n d_in"], Y: Float[Tensor, "B m d_y"]) -> Float[Tensor, "B n d"]:
    """Compute MAB(X, Y) tile by tile."""
    attention, feed = mab.multihead, mab.feed_forward[0]
    K = join_heads(attention.score.keys(split_heads(attention.key(Y), attention.heads)))
    maps = attention.query.weight, attention.query.bias, feed.weight, feed.bias
    return write_rows(X, K, attention.value(Y), *maps, heads=attention.heads)


def write_rows(X: Tensor, K: Tensor, V: Tensor, *maps: Tensor, heads: int) -> Float[Tensor, "B n d"]:
    """Return O [B, n, d]. Each row of X attends to the m keys of its set."""
    forward, backward = partial(_write, heads=heads), partial(_backward, heads=heads)
    return in_tiles(forward, backward, partial(write_plainly, heads=heads), X, K, V, *maps)


def write_plainly(
    X: Tensor, K: Tensor, V: Tensor, Wq: Tensor, bq: Tensor, W: Tensor, b: Tensor, *, heads: int
) -> Float[Tensor, "B n d"]:
    """Compute `write_rows` in plain torch operations, for second derivatives."""
    Q = X @ Wq.mT + bq
    H = Q + torch.cat([torch.softmax(q @ k.mT, dim=-1) @ v for q, k, v in _heads(heads, Q, K, V)], dim=-1)
    return H + torch.relu(H @ W.mT + b)


def _write(
    X: Tensor, K: Tensor, V: Tensor, Wq: Tensor, bq: Tensor, W: Tensor, b: Tensor, *, keeps: bool, heads: int
) -> tuple[Tensor, ...]:
    """Return O and, with `keeps`, what the backward pass needs: H, O [B n, d] and the weights [B n * h * m]."""
    (B, n), m, rows = X.shape[:2], K.shape[1], X.flatten(0, 1)
    O = rows.new_empty(B * n, len(W))  # noqa: E741  the papers' letter
    hidden, weights = (torch.empty_like(O), O.new_empty(B * n * heads * m)) if keeps else (O[:0], O[:0])
    attended, fed, scratch = Scratch(O), Scratch(O), Scratch(O)
    for sets, part in parts_of_sets(B, n, O.shape[1]):
        o, count = O[part], sets.stop - sets.start
        if keeps:
            H, A = hidden[part], _weights(weights, sets, part, heads, m)
        else:
            H, A = attended(*o.shape), scratch(heads, count, len(o) // count, m)
        torch.addmm(bq, rows[part], Wq.mT, out=H)
        _attend(H, K[sets], V[sets], A)
        torch.add(H, torch.addmm(b, H, W.mT, out=fed(*o.shape)).relu_(), out=o)
    return O.unflatten(0, (B, n)), hidden, O, weights


def _attend(H: Tensor, K: Tensor, V: Tensor, weights: Tensor) -> None:
    """Compute the weights [h, sets, n, m], and add their products with the values to the queries H [rows, d]."""
    parts = _heads(len(weights), H.unflatten(0, (weights.shape[1], -1)), K, V)
    for A, (q, k, _) in zip(weights, parts, strict=True):
        torch.bmm(q, k.mT, out=A)
    torch.softmax(weights, dim=-1, out=weights)
    for A, (q, _, v) in zip(weights, parts, strict=True):
        _add_product(q, A, v)


def _add_product(out: Tensor, A: Tensor, B: Tensor) -> None:
    """Add the batched product A B to `out`, which may be columns of a wider tensor."""
    # `baddbmm_` into such columns computes one product per set, which takes a fifth of a training step if sets have ten
    # rows. A separate product and sum need one more pass over memory, which is slower if a tile has only one or two
    # sets, because they are large.
    if len(out) > 2:
        out += torch.bmm(A, B)
    else:
        out.baddbmm_(A, B)


def _heads(heads: int, *parts: Tensor) -> list[tuple[Tensor, ...]]:
    """Return, for each head, views of its columns of all tensors."""
    return list(zip(*(part.chunk(heads, dim=-1) for part in parts), strict=True))


def _weights(kept: Tensor, sets: slice, part: slice, heads: int, keys: int) -> Tensor:
    """Return the weights of a tile, as a view [h, sets, n, m] of `kept`."""
    size = heads * keys
    return kept[part.start * size : part.stop * size].view(heads, sets.stop - sets.start, -1, keys)


def _backward(gO: Tensor, for_rows: bool, *given: Tensor, heads: int) -> tuple[Tensor | None, ...]:
    X, K, V, Wq, bq, W, b, hidden, O, weights = given  # noqa: E741
    (B, n), rows, gO = X.shape[:2], X.flatten(0, 1), gO.flatten(0, 1).contiguous()
    gX = torch.empty_like(rows) if for_rows else None
    gK, gV, gWq, gbq, gW, gb = (torch.zeros_like(one) for one in (K, V, Wq, bq, W, b))
    fed, attended, scratch = Scratch(gO), Scratch(gO), Scratch(gO)
    for sets, part in parts_of_sets(B, n, hidden.shape[1]):
        g, H = gO[part], hidden[part]
        gT = torch.sub(O[part], H, out=fed(*H.shape))
        gT.sign_().mul_(g)  # the ReLU is positive where O > H
        gW.addmm_(gT.mT, H)
        gb += gT.sum(dim=0)
        gH = torch.addmm(g, gT, W, out=attended(*H.shape))
        A = _weights(weights, sets, part, heads, K.shape[1])
        _attend_backward(A, scratch(*A.shape), gH, H, K[sets], V[sets], gK[sets], gV[sets])
        gWq.addmm_(gH.mT, rows[part])
        gbq += gH.sum(dim=0)
        if gX is not None:
            torch.mm(gH, Wq, out=gX[part])
    return None if gX is None else gX.view_as(X), gK, gV, gWq, gbq, gW, gb


def _attend_backward(
    A: Tensor, gA: Tensor, gH: Tensor, H: Tensor, K: Tensor, V: Tensor, gK: Tensor, gV: Tensor
) -> None:
    """Convert the gradient of H [rows, d] in place to that of Q, and add to the gradients of the keys and values."""
    rows = (part.unflatten(0, (A.shape[1], -1)) for part in (gH, H))
    parts = _heads(len(A), *rows, K, V, gK, gV)
    for a, ga, (gh, _, _, v, _, gv) in zip(A, gA, parts, strict=True):
        torch.bmm(gh, v.mT, out=ga)
        gv += torch.bmm(a.mT, gh)
    gL = softmax_backward(gA, A)
    for a, gl, (gh, h, k, v, gk, _) in zip(A, gL, parts, strict=True):
        gk += torch.bmm(gl.mT, h) - torch.bmm(torch.bmm(gl.mT, a), v)  # Q = H - A V
        _add_product(gh, gl, k)
