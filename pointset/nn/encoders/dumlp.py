"""Dual-MLP interaction: a summary of the set is added to each row (after Fei et al., AAAI 2022)."""

from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from pointset.configuration import NormName
from pointset.nn.masks import Mask, zero_padded_rows
from pointset.nn.modules import Encoder, Maps
from pointset.nn.norms import has_shift, is_fixed, make_norm
from pointset.nn.pooling.dumlp import DualMLP, NormedLayers
from pointset.nn.registry import register


class InteractionLayer(nn.Module):
    """Y = X + ReLU(N(X W + vec(S) U)): the rows interact through a summary S = A^T V [m, e] of their set. Cost O(n).

    As in `DualMLP`, A [n, m] = softmax over the rows of N(X W^A) and V [n, e] = N(X W^V), with e = d / 4 and a norm N.
    The product vec(S) U, where vec(S) is S as one vector, has width d. The layer adds it to each row, as in the
    authors' part-segmentation networks (github JaronTHU/DuMLP-Pin, MyLayer.py, `BroadcastBlock` without its cross
    term). Their layer has no residual X.

    Args:
        dim: width d of the rows.
        m: number of attention maps, the columns of A.
        norm: name of the norm N, "batch" in the paper.

    Example:
        >>> pointset.nn.InteractionLayer(16, 4)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 100, 16])
    """

    maps: ClassVar[Maps] = {"reads": ("reads", "keys")}

    def __init__(self, dim: int, m: int, norm: NormName = "batch") -> None:
        super().__init__()
        e = max(1, dim // 4)
        self.reads = DualMLP(dim, [], m, e, norm)
        self.rows = nn.Linear(dim, dim, bias=not has_shift(norm))
        self.summary = nn.Linear(m * e, dim, bias=False)
        self.norm = make_norm(norm, dim)

    def forward(self, X: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X. `mask` is True at real rows."""
        S = self.reads(X, mask)
        if is_fixed(self.norm):  # N(X W + s U) = X W' + s U' + b needs no pass for N
            (W, b), (U, _) = self.norm.folded_into(self.rows), self.norm.folded_into(self.summary)
            shared = linear(S.flatten(1), U)[:, None]
            Y = zero_padded_rows(linear(X, W, b).add_(shared), mask)
        else:
            shared = self.summary(S.flatten(1))[:, None]
            Y = self.norm(self.rows(X).add_(shared), mask)
        # In place only without gradients: the norm returns a view, whose gradient would be copied.
        return X + Y.relu() if Y.requires_grad else Y.relu_().add_(X)


class Stem(NormedLayers):
    """The first layer, ReLU(N(X W)), from coordinates to rows of width d."""

    def __init__(self, inputs: int, dim: int, norm: NormName) -> None:
        super().__init__([inputs, dim], norm)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X. `mask` is True at real rows."""
        return super().forward(X, mask).relu()


@register("encoder", "dumlp<m>", listed="dumlp16")
class DualMLPEncoder(Encoder):
    """A layer from width `inputs` to `dim`, then interaction layers (two by default) with m maps each. Cost O(n).

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, dim].

    Args:
        m: number of attention maps of each layer.
        inputs, dim, layers: inputs per point, width of the layers, and number of interaction layers.
        norm: name of the norm.

    Source:
        After Fei et al., DuMLP-Pin (AAAI 2022); see `InteractionLayer`.

    Example:
        >>> pointset.nn.DualMLPEncoder(4, 3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ("layers", "norm")
    export = True
    maps = InteractionLayer.maps

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(argument, inputs, options.dim, options.layers or 2, options.attention.norm or "batch")

    def __init__(self, m: int, inputs: int, dim: int, layers: int = 2, norm: NormName = "batch") -> None:
        stem = Stem(inputs, dim, norm)
        super().__init__([stem, *(InteractionLayer(dim, m, norm) for _ in range(layers))])
