"""Makes a copy of a model that torch.export can record: one graph for sets of any size.

Attention, scores and norms detect that they are being exported, and then use the same operations for all sizes.
PointNet and DGCNN remove padded rows, which gives a different graph for every mask; here they are replaced by
counterparts that keep padded rows. Results differ only by rounding.
"""

# Only padded sets are exported, so a counterpart need not accept the packed sets that its module accepts.
# mypy: disable-error-code="override"

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.context import DGCNN, PointNet
from pointset.nn.masks import as_mask, masked_max, masked_mean, zero_padding


def portable(model: nn.Module) -> nn.Module:
    """A copy of a model for export: on the CPU, in evaluation mode, with counterparts in place of context models."""
    copied = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for module in copied.modules():
        module.__class__ = COUNTERPARTS.get(type(module), type(module))
        if hasattr(module, "allow_single_element"):
            # torch-geometric's batch norm branches on the number of rows; in evaluation mode both branches are equal.
            setattr(module, "allow_single_element", False)  # noqa: B010 - not an attribute of every module
    return copied


class PaddedPointNet(PointNet):
    """PointNet on padded rows."""

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        return self.head(masked_max(rowwise(self.rows, points), mask).flatten(1))


class PaddedDGCNN(DGCNN):
    """Dynamic graph CNN on padded rows, with k neighbours [B, n, k] in place of a list of edges."""

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        keep = as_mask(points, mask)
        stages = [points]
        for convolution in self.convolutions:
            stages.append(self._convolved(convolution.nn, stages[-1], keep))
        rows = rowwise(self.rows, torch.cat(stages[1:], dim=2))
        return self.head(torch.cat([masked_max(rows, keep), masked_mean(rows, keep)], dim=2).flatten(1))

    def _convolved(self, network: Any, rows: Tensor, keep: Tensor) -> Tensor:
        """Max over the neighbours j of network(x_i, x_j - x_i): [B, n, d]; padded rows come out as zeros."""
        # By default, cdist chooses its algorithm by n.
        distance = torch.cdist(rows, rows, compute_mode="use_mm_for_euclid_dist")
        distance = distance.masked_fill(~keep[:, None, :], float("inf"))
        # Pad with k columns at infinity, so that topk finds k columns in a set of any size.
        near = F.pad(distance, (0, self.neighbours), value=float("inf")).topk(self.neighbours, largest=False)
        chosen = near.indices.clamp(max=rows.shape[1] - 1)
        first = torch.arange(rows.shape[0], device=rows.device)[:, None, None] * rows.shape[1]
        others = rows.flatten(0, 1)[chosen + first]  # [B, n, k, d_in]
        own = rows.unsqueeze(2).expand_as(others)
        edges = rowwise(network, torch.cat([own, others - own], dim=3))
        real = near.values.isfinite().unsqueeze(-1)
        return zero_padding(edges.masked_fill(~real, float("-inf")).amax(dim=2), keep)


COUNTERPARTS: dict[type[nn.Module], type[nn.Module]] = {PointNet: PaddedPointNet, DGCNN: PaddedDGCNN}


def rowwise(network: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Apply a network for rows [N, d] to rows [..., d]."""
    return network(rows.flatten(0, -2)).unflatten(0, rows.shape[:-1])
