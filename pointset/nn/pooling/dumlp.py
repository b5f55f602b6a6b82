"""Dual-MLP attention pooling: a network in place of seeds and keys (Fei et al., DuMLP-Pin, AAAI 2022)."""

from pointset.configuration import NormName
from pointset.nn.dual_mlp import DualMLP
from pointset.nn.registry import register


@register("pooling", "dumlp<k>", listed="dumlp32", packed=True, export=True, maps=True)
class DualMLPPool(DualMLP):
    """softmax_n(f(Z))^T g(Z): k rows of width d / 4.

    f and g are row-wise networks of the rows Z [n, width]; f has k outputs, g has d / 4. Their hidden widths are d / 4
    and d for rows narrower than d, such as coordinates, and d for other rows. With the encoder `none`, dim=128 and
    k = 32, it is the network of the authors for ModelNet40: 3 -> 32 -> 128 -> 32 (theirs also has normals as inputs).

    Args:
        k: number of attention maps over the points.
        width: width of the rows, any.
        dim: width d of the widest hidden layer.
        norm: norm after every layer; None means "batch", as published.
    """

    def __init__(self, k: int, width: int, dim: int, norm: NormName | None) -> None:
        narrow = max(1, dim // 4)
        super().__init__(width, [narrow, dim] if width < dim else [dim], k, narrow, norm or "batch")
