"""Zoo models that are quick to build, and inputs for them."""

import torch
from covering import covering_models
from torch import Tensor, nn

import pointset

ALL = [*covering_models(), "isab5-pma4", "sab-pma2", "isab5-max+pma2", "rffp-aggr.set2set", "rff-aggr.settransformer"]

FEW = [name for name in ALL if not name.startswith("isab16-") or name.endswith("-max")]
"""Every pooling once."""
CLASSES = 7


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=CLASSES, dim=16, **options).double().eval()


def clouds(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
