"""No encoder: the pooling reads the points directly."""

from torch import nn

from pointset.nn.layers import Masked
from pointset.nn.registry import register


@register("encoder", "none", packed=True, export=True, layered=False)
def no_layers(inputs: int, dim: int, any_width: bool) -> nn.Module:
    """The points unchanged if the pooling accepts rows of any width, else one linear layer to width `dim`."""
    return Masked() if any_width else Masked(nn.Linear(inputs, dim))
