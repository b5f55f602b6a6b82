"""Bounds, and the backward pass that the functions of this package share; it keeps only the weights.

A weight is free if it is neither 0 nor at its upper bound. The derivatives of the free weights are
p_i' = r_i (z_i' - tau'), with tau the threshold of the row, and they must sum to 0. So, for a gradient g with respect
to p and m = sum(r g) / sum(r),

    dL/dz_i = r_i (g_i - m),    dL/du_i = g_i - m where p_i = u_i, else 0.

Only the rate r_i of a free weight differs: p_i for softmax, 1 for sparsemax and sqrt(p_i) for entmax-1.5 (Peters,
Niculae and Martins, arXiv 1905.05702). The rate of a weight that is not free is 0. If no weight of a row is free, for
example because its bounds sum to 1, m is sum(p g). This is the gradient of u / sum(u), in which a constant added to g
cancels, as it does in all other rows.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from pointset.errors import PointsetError
from pointset.nn.fast.torch_private import is_traced

SHORT = 64
"""Rows of at most this length are transposed in memory first: a sum over 16 neighbouring numbers costs 10 times as
much as a sum over 16 rows of a matrix."""

PIECE_NUMBERS = 2**17
"""Numbers in a piece, per thread: a piece and two copies of it fit a second-level cache of 2 MiB."""

SLACK = {torch.float64: 1e-9, torch.float32: 1e-4}
"""By data type, how far below 1 the sum of a row's bounds may be: the rounding error of about a thousand bounds."""


def single_or_double(z: Tensor) -> Tensor:
    """The scores in the type of the computation: float64 stays, every other type becomes float32."""
    return z if z.dtype == torch.float64 else z.float()


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *rows: Tensor) -> tuple[Tensor, ...]:
    """Apply `kernel` to rows [..., n], in pieces that fit the processor's cache.

    The kernel gets each piece with keys first, [n, r], and returns tensors of that shape. On an accelerator, and for
    few rows, there is one piece.

    Kernels avoid bool tensors: on a CPU, comparing, selecting and counting with them takes 3 to 50 times as long as
    with signs, products and sums.
    """
    shape = rows[0].shape
    flat = [part.reshape(-1, shape[-1]) for part in rows]
    outputs: list[Tensor] = []
    for piece in _pieces(flat[0]):
        parts = [part[piece].contiguous().T for part in flat]  # the same layout for all, expanded tensors included
        results = kernel(*(part.contiguous() if shape[-1] <= SHORT else part for part in parts))
        if not outputs:
            outputs = [result.new_empty(flat[0].shape) for result in results]
        for whole, result in zip(outputs, results, strict=True):
            whole[piece] = result.T
    return tuple(part.view(shape) for part in outputs)


def _pieces(rows: Tensor) -> Iterator[slice]:
    count, n = rows.shape
    step = max(1, PIECE_NUMBERS * torch.get_num_threads() // n if rows.device.type == "cpu" else count)
    for start in range(0, max(1, count), step):
        yield slice(start, start + step)


Rows = tuple[Tensor, ...]


def on_simplex(
    z: Tensor,
    mask: Tensor | None,
    solve: Callable[..., Rows],
    closed_form: Callable[..., Tensor],
    rate: Callable[..., Tensor],
    upper: Tensor | float | None = None,
) -> Tensor:
    """Weights p [..., n] of scores z [..., n], differentiable.

    Args:
        z: scores of any floating type.
        mask: True at real keys, broadcastable to z; None if all are real.
        solve: computes the weights from scores, and from bounds if there are any; then also a mask that is 1 where a
            weight equals its bound. All are [n, r], keys first.
        closed_form: computes the weights from rows [..., n] in plain operations, for traced code.
        rate: r as a differentiable function of p, and of u if there are bounds.
        upper: bounds of at least 0, broadcastable to z.

    Raises:
        BoundsError: a bound is negative, or the bounds of a row's real keys sum to less than 1. In compiled, exported
            or transformed code this is not checked, and such a row gets its bounds as weights.
    """
    if z.shape[-1] == 0:
        return z.clone()
    rows: Rows = (single_or_double(z),)
    if upper is not None:
        rows = (*rows, _checked_bounds(upper, rows[0], mask))
    if mask is not None:
        rows = (rows[0].masked_fill(~mask, torch.finfo(torch.float32).min if upper is None else 0.0), *rows[1:])
    p = closed_form(*rows) if is_traced() else _Weights.apply(solve, rate, *rows)
    return (p if mask is None else p * mask).to(z.dtype)  # for rows without a real key


class BoundsError(PointsetError, ValueError):
    """Upper bounds that no weights on the simplex satisfy."""


def leave_no_choice(u: Tensor, dim: int = -1) -> Tensor:
    """True for the rows whose bounds sum to 1 up to rounding, or to less: every weight is then at its bound."""
    return u.detach().sum(dim=dim, keepdim=True) <= 1 + 8 * torch.finfo(u.dtype).eps


def gradient_of_shares(p: Tensor, free: Tensor) -> Tensor:
    """The weights p [..., n] unchanged; rows without a free weight get the gradient of p / sum(p) (see `gradients`)."""
    total = p.sum(dim=-1, keepdim=True)
    scale = total.detach() / total.clamp(min=torch.finfo(p.dtype).tiny)
    return torch.where(free.any(dim=-1, keepdim=True), p, p * scale)


def _checked_bounds(upper: Tensor | float, z: Tensor, mask: Tensor | None) -> Tensor:
    """The bounds of scores z [..., n], 0 at padded keys; see `on_simplex`."""
    given = torch.as_tensor(upper, device=z.device)
    u = given.to(z.dtype).expand(z.shape)
    if mask is not None:
        u = torch.where(mask, u, 0)
    if is_traced() or not z.numel():
        return u
    sums = u.detach().sum(dim=-1)
    if mask is not None:
        sums = sums.masked_fill(~mask.expand(u.shape).any(dim=-1), 1)
    smallest, lowest = torch.stack((sums.min(), u.detach().min())).tolist()
    slack = SLACK.get(given.dtype, 1e-2)
    if not lowest >= 0:
        raise BoundsError(f"upper bounds of weights must be at least 0, got {lowest:.6g}: clamp them to 0")
    if not smallest >= 1 - slack:
        raise BoundsError(
            f"the upper bounds of each row's real keys must sum to at least 1, got a sum of {smallest:.6g}: "
            "raise the bounds"
        )
    return u


class _Weights(torch.autograd.Function):
    """Weights of scores z, and of bounds u if there are any; the mask of held weights serves the gradient of u."""

    @staticmethod
    def forward(ctx: Any, solve: Any, rate: Any, z: Tensor, *u: Tensor) -> Tensor:
        parts = 1 + any(ctx.needs_input_grad[3:])
        p, *held = by_rows(lambda *rows: solve(*rows)[:parts], z, *u)
        ctx.save_for_backward(p, *u, *(part.bool() for part in held))
        ctx.rate, ctx.bounds = rate, len(u)
        return p

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        def scores_and_bounds(p: Tensor, g: Tensor, *rest: Tensor) -> Rows:
            u, held = rest[: ctx.bounds], rest[ctx.bounds :]
            r = ctx.rate(p, *u)
            # A row may have no free weight only if it has bounds.
            centred = g - _mean(_or_weights(r, p) if u else r, g)
            return (r * centred, *(part * centred for part in held))

        p, *rest = ctx.saved_tensors
        grads = [*_by_rows(scores_and_bounds, p, gradients[0], *rest), None]
        return None, None, *grads[: 1 + ctx.bounds]


def _mean(r: Tensor, g: Tensor) -> Tensor:
    """The mean m of g [n, r] over keys, weighted by r; 0 where all rates are 0."""
    return (r * g).sum(dim=0, keepdim=True) / r.sum(dim=0, keepdim=True).clamp(min=torch.finfo(r.dtype).tiny)


def _or_weights(r: Tensor, p: Tensor) -> Tensor:
    """The rates, or the weights p in rows whose rates are all 0."""
    none = r.amax(dim=0, keepdim=True) == 0
    return r + p * none if none.any() else r


def _by_rows(kernel: Callable[..., Rows], *rows: Tensor) -> Rows:
    """`by_rows`, or a single call of the kernel when the result is differentiated again (second derivatives)."""
    if not torch.is_grad_enabled():
        return by_rows(kernel, *rows)
    return tuple(result.movedim(0, -1) for result in kernel(*(part.movedim(-1, 0) for part in rows)))
