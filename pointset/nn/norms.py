"""Normalisations of sets of rows, by name: "layer", "set", "group", "instance", "batch", "none".

The norms differ in which numbers of a batch of sets [B, n, d] share a mean and a variance:

    layer      one row                                    [1, 1, d]
    set        all rows and features of a set             [1, n, d]
    group      all rows of a set, a group of features     [1, n, d / 8]
    instance   all rows of a set, one feature             [1, n, 1]
    batch      all rows of the batch, one feature         [B, n, 1]

All are called as `norm(X, mask)`, with rows X [B, n, d] and a mask [B, n].
"""

import math
from collections.abc import Callable
from typing import TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import NormName
from pointset.inputs import InputError
from pointset.nn.masks import Mask, full_mask, zero_padded_rows


class NoNorm(nn.Module):
    """Norm that returns the rows unchanged.

    Example:
        >>> pointset.nn.NoNorm()(torch.ones(1, 2, 3)).sum().item()
        6.0
    """

    def forward(self, X: Float[Tensor, "*rows d"], mask: Mask | None = None) -> Float[Tensor, "*rows d"]:
        """Return X."""
        return X


class LayerNorm(nn.LayerNorm):
    """Normalisation of each row over its features (arXiv 1607.06450). The mask has no effect.

    X [B, n, dim] with a mask [B, n] gives a result of the same shape.

    Example:
        >>> pointset.nn.LayerNorm(3)(torch.tensor([[[1.0, 2.0, 3.0]]])).round(decimals=2).tolist()
        [[[-1.2200000286102295, 0.0, 1.2200000286102295]]]
    """

    def forward(self, X: Float[Tensor, "*rows d"], mask: Mask | None = None) -> Float[Tensor, "*rows d"]:
        """Return the normalised X."""
        return super().forward(X)


class SetNorm(nn.Module):
    """Normalisation of each set over its rows and features together, then a scale and a shift of each feature.

        SN(X) = (X - mean(X)) / sqrt(var(X) + eps) * weight + bias

    with mean and variance over the n * d numbers of the set's real rows. Unlike layer norm, it does not give all rows
    of a set the same Euclidean length. With several groups of consecutive features, mean and variance are computed for
    each group. Source: Zhang et al., "Set Norm and Equivariant Skip Connections" (arXiv 2206.11925), section 4.

    X [B, n, dim] with a mask [B, n] gives a result of the same shape.

    Args:
        dim: width of the rows.
        groups: number of groups of consecutive features.
        eps: number added to the variance.

    Raises:
        InputError: `groups` does not divide `dim`.

    Example:
        >>> X, mask = torch.rand(2, 5, 8), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
        >>> pointset.nn.SetNorm(8)(X, mask).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, dim: int, groups: int = 1, eps: float = 1e-5) -> None:
        super().__init__()
        if dim % groups:
            raise InputError(f"dim must be a multiple of groups, got dim={dim} and groups={groups}")
        self.groups = groups
        self.eps = float(eps)
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, X: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the normalised X. `mask` is True at real rows."""
        parts = X.unflatten(2, (self.groups, -1))  # [B, n, groups, d / groups]
        keep = full_mask(X, mask)[:, :, None, None]
        count = (keep.sum(dim=1, keepdim=True) * parts.shape[3]).clamp(min=1).to(X.dtype)
        mean = parts.masked_fill(~keep, 0.0).sum(dim=(1, 3), keepdim=True) / count
        centred = (parts - mean).masked_fill(~keep, 0.0)
        variance = centred.square().sum(dim=(1, 3), keepdim=True) / count
        return (centred * torch.rsqrt(variance + self.eps)).flatten(2) * self.weight + self.bias


class GroupNorm(SetNorm):
    """Set norm with gcd(dim, 8) groups of features (after Wu and He, arXiv 1803.08494).

    Args:
        dim: width of the rows.

    Example:
        >>> pointset.nn.GroupNorm(16)(torch.rand(2, 5, 16)).shape
        torch.Size([2, 5, 16])
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim, groups=math.gcd(dim, 8))


class InstanceNorm(SetNorm):
    """Normalisation of each feature over the rows of each set (after Ulyanov et al., arXiv 1607.08022).

    The result for a single row is the bias.

    Args:
        dim: width of the rows.

    Example:
        >>> pointset.nn.InstanceNorm(16)(torch.rand(2, 5, 16)).shape
        torch.Size([2, 5, 16])
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim, groups=dim)


class BatchNorm(nn.BatchNorm1d):
    """Normalisation of each feature over all real rows of the batch (arXiv 1502.03167), as in PointNet.

    In evaluation mode, the running mean and variance are used, so the result does not depend on other sets of the
    batch. Without a mask, X may also be one vector per set, [B, d].

    Example:
        >>> pointset.nn.BatchNorm(16)(torch.rand(2, 5, 16)).shape
        torch.Size([2, 5, 16])
    """

    def forward(self, X: Float[Tensor, "*rows d"], mask: Mask | None = None) -> Float[Tensor, "*rows d"]:
        """Return the normalised X. `mask` is True at real rows, and padded rows become zeros."""
        if mask is None:
            return self.of_rows(X.flatten(0, -2)).view_as(X)
        if not self.training:
            return zero_padded_rows(self.of_rows(X.flatten(0, -2)).unflatten(0, X.shape[:-1]), mask)
        # Indices select the real rows: with a bool mask, a training step takes 1.5 times as long.
        real, rows = mask.flatten().nonzero().squeeze(1), X.flatten(0, 1)
        normalised = self.of_rows(rows.index_select(0, real)).to(X.dtype)
        return torch.zeros_like(rows).index_copy_(0, real, normalised).view_as(X)

    def of_rows(self, X: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """Normalise rows that are all real. In training, return a single row unchanged."""
        return X if self.training and len(X) < 2 else super().forward(X)

    def folded_into(self, linear: nn.Linear) -> tuple[Float[Tensor, "d d_in"], Float[Tensor, " d"]]:
        """Return W and b of a layer that applies `linear`, which has no bias, and then this norm in evaluation mode."""
        assert self.running_mean is not None
        assert self.running_var is not None
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return linear.weight * scale.unsqueeze(1), self.bias - self.running_mean * scale


NORMS: dict[NormName, Callable[[int], nn.Module]] = {
    "layer": LayerNorm,
    "set": SetNorm,
    "group": GroupNorm,
    "instance": InstanceNorm,
    "batch": BatchNorm,
}


def normed_linear(
    linear: nn.Linear, norm: nn.Module, X: Float[Tensor, "B n d_in"], mask: Mask | None = None
) -> Float[Tensor, "B n d"]:
    """Return norm(linear(X), mask). A batch norm in evaluation mode is merged with the linear layer."""
    if not is_fixed(norm):
        return norm(linear(X), mask)
    rows = nn.functional.linear(X, *norm.folded_into(linear))
    return zero_padded_rows(rows, mask)


def is_fixed(norm: nn.Module) -> TypeGuard[BatchNorm]:
    """Return True for a batch norm in evaluation mode, which is a fixed affine map of each feature."""
    return isinstance(norm, BatchNorm) and not norm.training


def has_shift(name: NormName) -> bool:
    """Return True if a bias before the norm has no effect, because the norm subtracts the mean over rows."""
    return name in ("batch", "instance")


def make_norm(name: NormName, dim: int) -> nn.Module:
    """Return the named norm for rows of width `dim`."""
    return NoNorm() if name == "none" else NORMS[name](dim)
