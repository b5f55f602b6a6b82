"""The gradients that all these functions share, with nothing kept for them but the weights.

Every weight that is free moves as p_i' = r_i (z_i' - tau'), tau being the row's threshold, and the row must go on
summing to 1. So, for a gradient g with respect to p and m = sum(r g) / sum(r),

    dL/dz_i = r_i (g_i - m),    dL/du_i = g_i - m where p_i is held at its upper bound u_i, else 0.

Only the rate r differs: p_i for softmax, 1 for sparsemax and sqrt(p_i) for entmax-1.5 (Peters, Niculae and Martins,
arXiv 1905.05702, Jacobian of section 3), and 0 where p_i is held at 0 or at u_i.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pointset.nn.simplex.rows import by_rows


def on_simplex(z: Tensor, solve: Callable[[Tensor], Tensor], rate: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights p [..., n] of scores z [..., n].

    Args:
        z: scores in float32 or float64.
        solve: what makes weights of scores, both [n, r], keys first.
        rate: r as a differentiable function of p.
    """
    return _OnSimplex.apply(z, solve, rate)


def below_bounds(
    z: Tensor,
    u: Tensor,
    solve: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    rate: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Weights p [..., n] of scores z [..., n] with upper bounds u [..., n].

    Args:
        z: scores in float32 or float64.
        u: bounds of the same type.
        solve: what makes weights of scores and bounds, and tells where they are held at their bound; all [n, r], keys
            first.
        rate: r as a differentiable function of p and u.
    """
    return _BelowBounds.apply(z, u, solve, rate)


class _OnSimplex(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, solve: Any, rate: Any) -> Tensor:
        (p,) = by_rows(lambda z: (solve(z),), z)
        ctx.save_for_backward(p)
        ctx.rate = rate
        return p

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (p,) = ctx.saved_tensors
        (gz,) = _by_rows(lambda p, g: (_centred(ctx.rate(p), g)[0],), p, gradients[0])
        return gz, None, None


class _BelowBounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, u: Tensor, solve: Any, rate: Any) -> Tensor:
        p, held = by_rows(solve, z, u)
        ctx.save_for_backward(p, u, held)
        ctx.rate = rate
        return p

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        def both(p: Tensor, u: Tensor, held: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
            gz, centred = _centred(ctx.rate(p, u), g)
            return gz, centred * held

        gz, gu = _by_rows(both, *ctx.saved_tensors, gradients[0])
        return gz, gu if ctx.needs_input_grad[1] else None, None, None


def _centred(r: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """What z and what bounds get, r (g - m) and g - m, keys first; m is 0 where no key is free."""
    smallest = torch.finfo(r.dtype).tiny
    centred = g - (r * g).sum(dim=0, keepdim=True) / r.sum(dim=0, keepdim=True).clamp(min=smallest)
    return r * centred, centred


def _by_rows(kernel: Callable[..., tuple[Tensor, ...]], *rows: Tensor) -> tuple[Tensor, ...]:
    """The same piece by piece, or at once if somebody wants to differentiate again."""
    if not torch.is_grad_enabled():
        return by_rows(kernel, *rows)
    return tuple(result.movedim(0, -1) for result in kernel(*(part.movedim(-1, 0) for part in rows)))
