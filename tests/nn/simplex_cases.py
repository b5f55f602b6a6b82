"""Shared by the tests of weights: scores, masks and bounds, and reference weights found by bisection in NumPy."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.nn.simplex import BOUNDED, WEIGHTS

Numbers = NDArray[np.float64]

SHAPE = (2, 3, 4)
"""Sets, heads and queries, before the keys."""


def case(
    seed: int,
    keys: int,
    scale: float = 1.0,
    masked: bool = True,
    room: float = 1.5,
    dtype: torch.dtype = torch.float64,
    ties: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Scores [2, 3, 4, keys], bounds likewise that sum to `room` over the real keys, and a mask [2, 1, 1, keys].

    A sixth of the bounds is 0, and a sixth of the scores are equal to others, unless there are no `ties`.
    """
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(*SHAPE, keys, generator=generator, dtype=torch.float64) * scale
    if ties:
        z[..., ::6] = z[..., :1].clone()
    mask = None
    if masked:
        mask = torch.rand(SHAPE[0], 1, 1, keys, generator=generator) < 0.7
        mask[..., 0] = True
    u = torch.rand(*SHAPE, keys, generator=generator, dtype=torch.float64)
    if ties:
        u[..., 1::6] = 0
    real = u if mask is None else u * mask
    u *= room / real.sum(dim=-1, keepdim=True)
    return z.to(dtype), u.to(dtype), mask


def weights_of(name: str, upper: Tensor | float) -> Callable[..., Tensor]:
    """The named function as f(z, mask=mask), with `upper` bound if it has bounds."""
    function = WEIGHTS[name]
    return partial(lambda z, mask=None: function(z, upper, mask)) if name in BOUNDED else function


def reference(name: str, z: Tensor, u: Tensor, mask: Tensor | None) -> Tensor:
    """The weights by bisection of the threshold of each row; each row must have a real key."""
    scores, bounds = z.double().numpy(), u.double().numpy()
    top, bottom = scores.max(axis=-1, keepdims=True), scores.min(axis=-1, keepdims=True)
    if mask is not None:
        scores = np.where(mask.numpy(), scores, -np.inf)
    shares: dict[str, Callable[[Numbers], Numbers]] = {
        "softmax": lambda tau: np.exp(np.minimum(scores - tau, 1)),
        "sparsemax": lambda tau: np.maximum(scores - tau, 0),
        "entmax15": lambda tau: np.maximum(scores / 2 - tau, 0) ** 2,
        "csoftmax": lambda tau: np.minimum(np.exp(np.minimum(scores - tau, 1)), bounds),
        "csparsemax": lambda tau: np.clip(scores - tau, 0, bounds),
    }
    share, lowest, highest = shares[name], np.minimum(bottom, bottom / 2) - 100, np.maximum(top, top / 2) + 100
    for _ in range(100):
        middle = (lowest + highest) / 2
        enough = share(middle).sum(axis=-1, keepdims=True) >= 1
        lowest, highest = np.where(enough, middle, lowest), np.where(enough, highest, middle)
    return torch.from_numpy(share((lowest + highest) / 2))
