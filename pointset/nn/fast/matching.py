"""The greatest product of each row with several matrices, without keeping all products."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_watched


def best_products(X: Float[Tensor, "N d"], U: Float[Tensor, "k f d"]) -> Float[Tensor, "N f"]:
    """max(0, max_j x . u_jf) of every row x.

    On a CPU one byte is kept of each maximum, which j has it: in half the time that keeping the k products takes.
    """
    if X.device.type != "cpu" or len(U) >= 255 or is_watched():
        return (X.expand(len(U), -1, -1) @ U.transpose(1, 2)).amax(dim=0).relu()
    return _Best.apply(X, U)


class _Best(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, U: Tensor) -> Tensor:
        best = X.new_zeros(len(X), U.shape[1])
        which = torch.zeros(best.shape, dtype=torch.uint8)  # 1 is the first matrix
        products = torch.empty_like(best)
        for j, u in enumerate(U, 1):
            torch.mm(X, u.T, out=products)
            # The later one of the better ones is the best: in bytes, where filling by a mask takes 20 times as long.
            torch.maximum(which, (products > best).view(torch.uint8).mul_(j), out=which)
            torch.maximum(best, products, out=best)
        ctx.save_for_backward(X, U, which)
        return best

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        X, U, which = ctx.saved_tensors
        # Out of place, and so good for second derivatives too.
        parts = [gradients[0] * (which == j) for j in range(1, len(U) + 1)]
        of_rows = parts[0] @ U[0]
        for part, u in zip(parts[1:], U[1:], strict=True):
            of_rows = of_rows + part @ u
        return of_rows, torch.stack([part.T @ X for part in parts])
