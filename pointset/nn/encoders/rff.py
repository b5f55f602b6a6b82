"""Row-wise feed-forward encoder: the layers of PointNet."""

from typing import Any

from torch import nn

from pointset.configuration import NormName, check_counts
from pointset.nn.layers import Masked
from pointset.nn.modules import Encoder
from pointset.nn.norms import make_norm
from pointset.nn.registry import register


@register("encoder", "rff")
class RFFEncoder(Encoder):
    """Linear layers (four by default, as published), with a norm and a ReLU between them.

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, dim].

    Args:
        inputs, dim, layers, norm: inputs per point, width of the layers, number of layers, and name of the norm.

    Source:
        Zaheer et al., Deep Sets (arXiv 1703.06114); the layers of PointNet (Qi et al., arXiv 1612.00593).

    Example:
        >>> pointset.nn.RFFEncoder(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ("layers", "norm")
    export = True

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(inputs, options.dim, options.layers or 4, options.attention.norm or "none")

    def __init__(self, inputs: int, dim: int, layers: int = 4, norm: NormName = "none") -> None:
        check_counts(inputs=inputs, dim=dim, layers=layers)
        modules: list[nn.Module] = [Masked(nn.Linear(inputs, dim))]
        for _ in range(layers - 1):
            modules += [make_norm(norm, dim), Masked(nn.ReLU(), nn.Linear(dim, dim))]
        super().__init__(modules)
