"""Dual-MLP attention: softmax attention in which a network replaces the product of seeds and keys.

Source: Fei et al., "DuMLP-Pin: A Dual-MLP-dot-product Permutation-invariant Network for Set Feature Extraction" (AAAI
2022), and the authors' code (github JaronTHU/DuMLP-Pin, MyLayer.py, `AggregationBlock`).
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import NormName, check_counts
from pointset.nn.masks import Mask, zero_padded_rows
from pointset.nn.modules import Maps, Pooling
from pointset.nn.norms import has_shift, make_norm, normed_linear
from pointset.nn.registry import register
from pointset.nn.simplex.masked import single_or_double
from pointset.nn.simplex.unbounded import softmax


class NormedLayers(nn.Module):
    """A row-wise network: linear layers, each followed by a norm, with ReLUs between them but not at the end."""

    def __init__(self, widths: Sequence[int], norm: NormName) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.linear = nn.ModuleList(nn.Linear(*pair, bias=not has_shift(norm)) for pair in pairs)
        self.norm = nn.ModuleList(make_norm(norm, width) for _, width in pairs)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X. `mask` is True at real rows."""
        for number, (linear, norm) in enumerate(zip(self.linear, self.norm, strict=True)):
            assert isinstance(linear, nn.Linear)
            X = normed_linear(linear, norm, X.relu() if number else X, mask)
        return X


class DualMLP(nn.Module):
    """A^T V [k, e] for rows X [n, width], where A [n, k] is the softmax of f(X) over the rows, and V [n, e] is g(X).

    f and g are networks with the same hidden widths and a norm after every layer, including the last. An empty set
    gives zeros. Under mixed precision, the softmax and the sums are computed in float32.

    Args:
        width: width of the rows.
        hidden: widths of the hidden layers, the same for f and g.
        k: number of attention maps over the rows.
        e: width of the values.
        norm: norm after every linear layer, "batch" in the paper.

    Example:
        >>> pointset.nn.DualMLP(3, [8], k=4, e=16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 4, 16])
    """

    def __init__(self, width: int, hidden: Sequence[int], k: int, e: int, norm: NormName = "batch") -> None:
        super().__init__()
        check_counts(width=width, k=k, e=e)
        self.k = k
        self.logits = NormedLayers([width, *hidden, k], norm)
        self.values = NormedLayers([width, *hidden, e], norm)
        self.record: Callable[[Tensor], object] | None = None
        """Function that every forward pass calls with the weights [B, 1, k, n], or None."""

    def forward(self, X: Float[Tensor, "B n width"], mask: Mask | None = None) -> Float[Tensor, "B k e"]:
        """Return A^T V, [B, k, e]. `mask` is True at real rows."""
        X = zero_padded_rows(X, mask)  # a weight 0 times a padded NaN is NaN
        logits, V, keep = self.logits(X, mask), self.values(X, mask), None if mask is None else mask[:, :, None]
        mixed = torch.is_autocast_enabled(V.device.type)
        with torch.autocast(V.device.type, enabled=False):
            A = softmax(single_or_double(logits), keep, dim=1).mT
            if self.record is not None:
                self.record(A.unsqueeze(1))
            read = A @ single_or_double(V)
        return read if mixed else read.to(V.dtype)


@register("pooling", "dumlp<k>", listed="dumlp32")
class DualMLPPool(DualMLP, Pooling):
    """softmax(f(Z))^T g(Z), k rows of width d / 4, with the softmax over the rows of Z [n, width].

    f and g are row-wise networks with k and d / 4 outputs. If the rows are narrower than d, as coordinates are, the
    networks have two hidden layers, of widths d / 4 and d. Otherwise, they have one, of width d. With the encoder
    `none`, d = 128 and k = 32, they are the authors' networks for ModelNet40, 3 -> 32 -> 128 -> 32, but without normals
    as inputs.

    Z [B, n, width] with a mask [B, n] (True at real rows) gives [B, k, d / 4], or zeros for an empty set.

    Args:
        k: number of attention maps over the points.
        width: width of the rows.
        dim: width d of the widest hidden layer.
        norm: norm after every layer. None means "batch", as in the paper.

    Source:
        Fei et al., DuMLP-Pin (AAAI 2022).

    Example:
        >>> pointset.nn.DualMLPPool(32, 3, 128)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 32, 32])
    """

    options_used = ("norm",)
    export = True
    maps: ClassVar[Maps] = {"": ("pools", "keys")}
    any_width = True

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        return cls(argument, width, options.dim, options.attention.norm)

    def __init__(self, k: int, width: int, dim: int, norm: NormName | None = None) -> None:
        check_counts(dim=dim)
        narrow = max(1, dim // 4)
        super().__init__(width, [narrow, dim] if width < dim else [dim], k, narrow, norm or "batch")
