"""No encoder: the pooling gets the points."""

from typing import Any

from torch import nn

from pointset.nn.layers import Masked
from pointset.nn.modules import Encoder
from pointset.nn.registry import register


@register("encoder", "none")
class NoEncoder(Encoder):
    """Encoder that returns the points, or applies one linear layer if the pooling needs rows of width `dim`.

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, inputs], or [B, n, dim].

    Args:
        inputs: number of inputs per point.
        dim: width of the linear layer, or None to return the points.

    Example:
        >>> pointset.nn.NoEncoder(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ()
    export = True

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(inputs, None if pooling.any_width else options.dim)

    def __init__(self, inputs: int, dim: int | None = None) -> None:
        super().__init__([Masked() if dim is None else Masked(nn.Linear(inputs, dim))])
