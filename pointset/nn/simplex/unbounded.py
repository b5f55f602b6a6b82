"""Weights without upper bounds: softmax, sparsemax, and entmax-1.5, which is halfway between them.

The latter two find the support of each row, the keys with positive weights, by sorting without gradients. Then they
compute the weights on the support.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.sorting import sorted_values
from pointset.nn.simplex.masked import on_simplex


def softmax(
    z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None, dim: int = -1
) -> Float[Tensor, "*rows n"]:
    """Return argmax_p p.z + H(p) over the simplex, with H the Shannon entropy: p_i = exp(z_i) / sum_j exp(z_j).

    Args:
        z: scores, finite at real keys.
        mask: True at real keys, broadcastable to z, or None if all are real. Padded keys get exactly 0, and a row
            without a real key is all 0.
        dim: the dimension of the keys.

    Returns:
        The weights, in the shape of z.

    Example:
        >>> pointset.nn.softmax(torch.zeros(4), torch.tensor([True, True, False, False])).tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    if mask is None:
        return torch.softmax(z, dim=dim)
    # Instead of the lowest finite number, -inf would give NaN for a row without a real key, also in the gradient.
    return torch.softmax(z.masked_fill(~mask, torch.finfo(z.dtype).min), dim=dim) * mask


def sparsemax(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """Return argmin_p |p - z|^2 over the simplex: p_i = max(z_i - tau, 0), with tau such that sum(p) = 1.

    The Jacobian is Diag(s) - s s^T / |S|, where s is 1 on the support S and 0 elsewhere. Source: Martins and Astudillo,
    "From softmax to sparsemax" (arXiv 1602.02068).

    Args:
        z: scores, finite at real keys. Those in half precision are converted to float32.
        mask: True at real keys, broadcastable to z, or None if all are real. Padded keys get exactly 0, and a row
            without a real key is all 0.

    Returns:
        The weights, in the shape of z.

    Example:
        >>> pointset.nn.sparsemax(torch.tensor([2.0, 1.5, 0.0])).tolist()
        [0.75, 0.25, 0.0]
    """
    return on_simplex(z, mask, _sparsemax)


def _sparsemax(z: Tensor) -> Tensor:
    shifted = z - z.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        descending = -sorted_values(-shifted)
        sums = descending.cumsum(dim=-1)
        ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
        # The size of the support is the largest k with 1 + k z_k > z_1 + ... + z_k, for descending scores.
        size = (1 + ranks * descending > sums).sum(dim=-1, keepdim=True)
        tau = (sums.gather(-1, size - 1) - 1) / size
        support = shifted > tau
    # A Newton step on this support removes the rounding error of tau.
    above = torch.where(support, shifted - tau, 0)
    step = (above.sum(dim=-1, keepdim=True) - 1) / support.sum(dim=-1, keepdim=True)
    return torch.where(support, above - step, 0).clamp(min=0)


def entmax15(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """Return argmax_p p.z + H(p) over the simplex, with H the Tsallis entropy 4/3 sum_i (p_i - p_i^1.5) of order 1.5.

    The solution is p_i = max(z_i / 2 - tau, 0)^2. On the support, sum(p) = 1 is a quadratic equation for tau, of which
    the smaller root is used. The Jacobian is Diag(s) - s s^T / sum(s) with s = sqrt(p). Source: Peters, Niculae and
    Martins, "Sparse sequence-to-sequence models" (arXiv 1905.05702).

    Args:
        z, mask: see `sparsemax`.

    Returns:
        The weights, in the shape of z.

    Example:
        >>> pointset.nn.entmax15(torch.tensor([2.0, 1.5, -2.0])).tolist()[2]
        0.0
    """
    return on_simplex(z, mask, _entmax15)


def _entmax15(z: Tensor) -> Tensor:
    halves = z / 2
    shifted = halves - halves.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        # Each size of the support gives a candidate for the threshold. The threshold is the last candidate that does
        # not exceed the smallest score of its support. A key with a shifted score of -1 or less has weight 0.
        descending = -sorted_values(-shifted).clamp(max=2)
        size = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
        mean = descending.cumsum(dim=-1) / size
        spread = (descending.square().cumsum(dim=-1) - size * mean.square()).clamp(min=0)
        candidates = mean - ((1 - spread) / size).clamp(min=0).sqrt()
        last = (candidates <= descending).sum(dim=-1, keepdim=True) - 1
        support = shifted > candidates.gather(-1, last)
    size = support.sum(dim=-1, keepdim=True)
    mean = torch.where(support, shifted, 0).sum(dim=-1, keepdim=True) / size
    spread = torch.where(support, shifted - mean, 0).square().sum(dim=-1, keepdim=True)
    tau = mean - ((1 - spread) / size).sqrt()
    return torch.where(support, (shifted - tau).clamp(min=0).square(), 0)
