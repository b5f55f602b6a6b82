"""Encoders without interaction: row-wise layers, PointNet's skeleton (Qi et al., arXiv 1612.00593), and none."""

from torch import nn

from pointset.configuration import NormName
from pointset.nn.layers import Masked
from pointset.nn.norms import make_norm
from pointset.nn.registry import register


@register("encoder", "rff", packed=True, export=True)
def rowwise_layers(inputs: int, dim: int, layers: int | None, norm: NormName | None) -> list[nn.Module]:
    """Linear layers with ReLU between them and the chosen norm before each ReLU; four by default, as published."""
    modules: list[nn.Module] = [Masked(nn.Linear(inputs, dim))]
    for _ in range((layers or 4) - 1):
        modules += [make_norm(norm or "none", dim), Masked(nn.ReLU(), nn.Linear(dim, dim))]
    return modules


@register("encoder", "none", packed=True, export=True, layered=False)
def no_layers(inputs: int, dim: int, any_width: bool) -> nn.Module:
    """The points unchanged if the pooling accepts rows of any width, else one linear layer to width `dim`."""
    return Masked() if any_width else Masked(nn.Linear(inputs, dim))
