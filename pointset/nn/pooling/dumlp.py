"""Dual-MLP attention pooling: a network in place of seeds and keys (Fei et al., DuMLP-Pin, AAAI 2022)."""

from pointset.configuration import NormName
from pointset.nn.dual_mlp import DualMLP
from pointset.nn.registry import register


@register("pooling", "dumlp<k>", listed="dumlp32", packed=True, export=True, maps=True)
class DualMLPPool(DualMLP):
    """softmax_n(f(Z))^T g(Z): k rows of width d / 4.

    Two row-wise networks f and g of rows Z [n, width], f with k outputs and g with d / 4. Rows narrower than d, such as
    coordinates, pass through d / 4 and d hidden units, rows of width d or more through d. Behind the encoder `none`,
    dim=128 and k = 32 make it what the authors ran on ModelNet40: 3 -> 32 -> 128 -> 32 (there with normals beside the
    coordinates). Batch norm behind every layer as published, unless `norm` says otherwise.

    Args:
        k: maps over the points.
        width: of the rows, any.
        dim: width d of the widest hidden layer.
        norm: None takes "batch".
    """

    def __init__(self, k: int, width: int, dim: int, norm: NormName | None) -> None:
        narrow = max(1, dim // 4)
        super().__init__(width, [narrow, dim] if width < dim else [dim], k, narrow, norm or "batch")
