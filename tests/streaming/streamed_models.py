"""Models and a cloud for comparing streaming with computation in memory."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

import pointset

POINTS = 1037

CLOUD = torch.randn(POINTS, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

CLASSES = 7


def model_of(name: str, dtype: torch.dtype = torch.float64, **options) -> nn.Module:
    """A model whose norms and running statistics differ from their initial values."""
    model = pointset.create_model(name, classes=CLASSES, dim=16, **options).to(dtype).eval()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for number in itertools.chain(model.parameters(), model.buffers()):
            if number.is_floating_point():
                number += 0.3 * torch.rand(number.shape, generator=generator, dtype=dtype)
    return model


class Source:
    """A cloud in pieces of 100 points that counts its passes."""

    def __init__(self) -> None:
        self.started = 0

    def __call__(self) -> Iterator[Tensor]:
        self.started += 1
        return iter(CLOUD.split(100))
