"""Softmax: of all weights with the same mean score, those of highest entropy."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def softmax(
    z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None, dim: int = -1
) -> Float[Tensor, "*rows n"]:
    """argmax_p p.z + H(p) over the simplex, with H the Shannon entropy: p_i = exp(z_i) / sum_j exp(z_j).

    Args:
        z: scores, finite at real keys.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
        dim: the dimension of the keys.
    """
    if mask is None:
        return torch.softmax(z, dim=dim)
    # The lowest finite number, not -inf: a row without a real key would give NaN, in the gradient too.
    return torch.softmax(z.masked_fill(~mask, torch.finfo(z.dtype).min), dim=dim) * mask
