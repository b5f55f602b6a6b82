"""Random numbers from a generator alone, in the type of given points and on their device."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor


def uniform(shape: Sequence[int], low: float, high: float, like: Tensor, generator: Generator) -> Tensor:
    """Numbers uniform on [low, high)."""
    numbers = torch.rand(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype)
    return (low + (high - low) * numbers).to(like.device)


def normal(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
