"""Attention with an additive score of one hidden layer, computed in tiles that fit the processor's cache.

The hidden layer of a query x and a key y has c numbers, relu(p + r) with p = W x and r = V y. It is never stored for
all pairs. Its logit

    logit = w^T relu(p + r) = w^T max(p, -r) + w^T r

needs two passes over a tile. The backward pass needs only where the ReLU was open, s = 1[p > -r]. With g the gradient
with respect to the logits, and * elementwise,

    P = sum_r g s,   R = sum_p g s;      dL/dp = w * P,   dL/dr = w * R,   dL/dw = sum_p p * P + sum_r r * R

Because p and r are linear, dL/dw follows from W, V and their gradients, without another pass over the rows. The
projections of the attention are multiplied with the maps of the score, so each row is projected once.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.absorbed import absorbed_values
from pointset.nn.fast.parts import Parts
from pointset.nn.fast.tiles import Scratch, tile_size


class Side(NamedTuple):
    """The rows of one side (queries or keys), and the map W of their part of the hidden layer, X W^T, of all heads."""

    X: Float[Tensor, "_ n d_in"]
    W: Float[Tensor, "d d_in"]


def additive(
    parts: Parts,
    Q: Float[Tensor, "_ n d"],
    Y: Float[Tensor, "B m dim_key"],
    mask: Tensor | None,
    X: Float[Tensor, "_ n dim_query"] | None = None,
) -> Float[Tensor, "B n d"]:
    """concat_j(A_j V_j) with explicit weights; X are the rows of which Q is the projection, if they are known."""
    weights = parts.weigh(_logits_of(parts, Q, Y, X), mask)
    return torch.matmul(weights, parts.split(parts.value(Y))).transpose(1, 2).flatten(2)


def additive_absorbed(
    parts: Parts,
    Q: Float[Tensor, "_ n d"],
    Y: Float[Tensor, "B m dim_key"],
    mask: Tensor | None,
    X: Float[Tensor, "_ n dim_query"] | None = None,
) -> Float[Tensor, "B n d"]:
    """`additive` computed as A_j (Y W^V_j) = (A_j Y) W^V_j, for weights whose rows sum to 1."""
    weights = parts.weigh(_logits_of(parts, Q, Y, X), mask)
    read = torch.matmul(weights.flatten(1, 2), Y)
    return absorbed_values(parts, read.unflatten(1, (parts.heads, -1)))


def _logits_of(parts: Parts, Q: Tensor, Y: Tensor, X: Tensor | None) -> Tensor:
    layer = parts.hidden_layer()
    W, b = _followed(parts.key, layer.of_key)
    if X is None:
        queries = Side(Q, torch.block_diag(*layer.of_query).mT)
    else:
        W_query, b_query = _followed(parts.query, layer.of_query)
        queries, b = Side(X, W_query), b + b_query
    return additive_logits(queries, Side(Y, W), b, layer.out)


def _followed(projection: nn.Linear, W: Float[Tensor, "h c c"]) -> tuple[Tensor, Tensor]:
    """Weight and bias of a single linear map: the projection followed by the map W of each head."""
    weight, bias = (part.unflatten(0, W.shape[:2]) for part in (projection.weight, projection.bias))
    return torch.matmul(W.mT, weight).flatten(0, 1), torch.matmul(W.mT, bias.unsqueeze(2)).flatten()


def additive_logits(
    queries: Side, keys: Side, b: Float[Tensor, " d"], w: Float[Tensor, "h c"]
) -> Float[Tensor, "B h n m"]:
    """w_j^T relu(p + r + b) for all queries and keys of a set; a side of batch size 1 is shared by all sets."""
    if queries.X.shape[1] > keys.X.shape[1]:
        return additive_logits(keys, queries, b, w).mT  # so that the innermost loop runs along the longer side
    inputs = (*queries, *keys, b, w)
    if torch.is_grad_enabled() and any(part.requires_grad for part in inputs):
        logits: Tensor = _Additive.apply(*inputs)
        return logits
    return _additive(*_columns(*inputs), w)


def additive_plainly(queries: Side, keys: Side, b: Float[Tensor, " d"], w: Float[Tensor, "h c"]) -> Tensor:
    """The definition of `additive_logits` in plain torch operations, used for second derivatives."""
    p, r = ((X @ W.mT).unflatten(-1, w.shape).transpose(1, 2) for X, W in (queries, keys))
    hidden = torch.relu(p.unsqueeze(3) + r.unsqueeze(2) + b.view(len(w), 1, 1, -1))
    return torch.matmul(hidden, w[:, None, :, None]).squeeze(-1)


def _columns(X: Tensor, W: Tensor, Y: Tensor, V: Tensor, b: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """The two terms of the hidden layer: p + b [i, c, n, 1] and -r [i, c, 1, m], with i = sets * heads and n <= m."""
    p = torch.baddbmm(b.unsqueeze(1), W.expand(len(X), -1, -1), X.mT)
    r = torch.bmm((-V).expand(len(Y), -1, -1), Y.mT)
    sets, (heads, width) = len(r) if len(p) == 1 else len(p), w.shape
    p, r = (part.expand(sets, -1, -1).reshape(sets * heads, width, part.shape[2]) for part in (p, r))
    return p.unsqueeze(3), r.unsqueeze(2)


def _pieces(p: Tensor, r: Tensor, *parts: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Cut p [i, c, n, 1], r [i, c, 1, m] and further tensors into pieces whose hidden layer fits a tile."""
    n, m, pairs = p.shape[2], r.shape[3], max(1, tile_size() // p.shape[1])
    for item in _cut((p, r, *parts), 0, pairs // max(1, n * m)):
        if n * m <= pairs:
            yield item
            continue
        for rows in _cut(item, 2, pairs // m):
            yield from _cut(rows, 3, pairs)


def _cut(parts: tuple[Tensor, ...], axis: int, step: int) -> Iterator[tuple[Tensor, ...]]:
    """Pieces along an axis; a tensor of length 1 along this axis is part of every piece."""
    length = max(part.shape[axis] for part in parts)
    cut = (part.split(max(1, step), axis) if part.shape[axis] == length else repeat(part) for part in parts)
    return zip(*cut, strict=False)


def _additive(p: Tensor, r: Tensor, w: Tensor) -> Tensor:
    """The logits [B, h, n, m] from the outputs of `_columns`: p + b [i, c, n, 1], and -r [i, c, 1, m] as `r`."""
    out = w.repeat(len(p) // len(w), 1).unsqueeze(1)  # [i, 1, c]
    of_r = torch.bmm(out, r.squeeze(2)).unsqueeze(2)  # -w^T r, [i, 1, 1, m]
    logits = p.new_empty(len(p), 1, p.shape[2], r.shape[3])
    hidden = Scratch(p)
    for p_, r_, out_, of_r_, logits_ in _pieces(p, r, out.mT.unsqueeze(3), of_r, logits):
        x = torch.maximum(p_, r_, out=hidden(*p_.shape[:3], r_.shape[3]))
        product = torch.bmm(out_.squeeze(3).mT, x.flatten(2))
        torch.sub(product.view(logits_.shape), of_r_, out=logits_)
    return logits.view(len(p) // len(w), len(w), *logits.shape[2:])


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        X, W, Y, V, b, w = inputs
        p, r = _columns(X, W, Y, V, b, w)
        ctx.save_for_backward(*inputs, p, r)
        return _additive(p, r, w)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, p, r = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives
            return _differentiable(ctx, gradients[0], inputs)
        X, W, Y, V, b, w = inputs
        P, R = _sums(gradients[0].contiguous(), p, r)
        factor, gb = w.view(-1, 1), P.sum(dim=(0, 2))
        gX, gW = _side_backward(P, X, factor * W, ctx.needs_input_grad[0])
        gY, gV = _side_backward(R, Y, factor * V, ctx.needs_input_grad[2])
        gw = (gW * W).sum(dim=1) + (gV * V).sum(dim=1) + gb * b
        return gX, factor * gW, gY, factor * gV, w.flatten() * gb, gw.view(w.shape)


def _differentiable(ctx: Any, gradient: Tensor, inputs: list[Tensor]) -> tuple[Tensor | None, ...]:
    X, W, Y, V, b, w = inputs
    logits, needs = additive_plainly(Side(X, W), Side(Y, V), b, w), ctx.needs_input_grad
    wanted = [part for part, needed in zip(inputs, needs, strict=True) if needed]
    found = iter(torch.autograd.grad(logits, wanted, gradient, create_graph=True))
    return tuple(next(found) if needed else None for needed in needs)


def _sums(g: Tensor, p: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """P [B, d, n] and R [B, d, m] of the module docstring."""
    (_, width, n, _), m, (sets, heads) = p.shape, r.shape[3], g.shape[:2]
    whole = width * n * m <= tile_size()  # every piece has all pairs of its heads: nothing to accumulate
    P, R = (part.new_empty(part.shape) if whole else part.new_zeros(part.shape) for part in (p, r))
    is_open = Scratch(g)
    for p_, r_, g_, P_, R_ in _pieces(p, r, g.view(len(p), 1, n, m), P, R):
        x = torch.gt(p_, r_, out=is_open(*p_.shape[:3], r_.shape[3])).mul_(g_)
        if whole:
            torch.sum(x, dim=3, keepdim=True, out=P_)
            torch.sum(x, dim=2, keepdim=True, out=R_)
        else:
            P_ += x.sum(dim=3, keepdim=True)
            R_ += x.sum(dim=2, keepdim=True)
    return P.view(sets, heads * width, n), R.view(sets, heads * width, m)


def _side_backward(S: Tensor, X: Tensor, W: Tensor, for_rows: bool) -> tuple[Tensor | None, Tensor]:
    """The gradients of one side, from its sums S [B, d, n].

    Args:
        S: P or R.
        X: rows [B, n, d_in], or [1, n, d_in].
        W: the map of the rows, already multiplied by w.
        for_rows: whether the gradient of the rows is needed.

    Returns:
        The gradient of the rows, or None, and the gradient of the map without the factor w.
    """
    if len(X) != len(S):
        S = S.sum(dim=0, keepdim=True)
    gX = torch.bmm(S.mT, W.expand(len(S), -1, -1)) if for_rows else None
    gW = torch.zeros_like(W)
    for s, x in zip(S.unbind(), X.unbind(), strict=True):  # a batched product would store B matrices
        gW.addmm_(s, x)
    return gX, gW
