"""Exact support: points with non-zero pooling weight, on which alone a prediction depends.

It exists where no encoder lets points interact and the pooling gives points a weight of exactly zero: those that win no
maximum, or that sparsemax leaves out. The logits without the other points are computed and
compared. Local features are not computed again: they depend on all points.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.explain.maps import AttentionMap
from pointset.explain.recording import as_cloud_of
from pointset.nn.layers import in_evaluation_mode
from pointset.zoo.classifiers import SetClassifier

LARGEST_CHANGE = 1e-4
"""Of a logit, relative to the largest: sums over fewer points are rounded in another order."""


@dataclass(frozen=True, eq=False)
class Support:
    """The support of one prediction."""

    points: Bool[Tensor, " n"]
    """True for points without which the logits could change."""
    change: float
    """Largest change of a logit when all other points are left out."""

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {"support": int(self.points.sum()), "points": len(self.points), "change": self.change}

    def __str__(self) -> str:
        count, all_points = int(self.points.sum()), len(self.points)
        same = "are equal" if self.change == 0 else f"differ by at most {self.change:.0e}"
        return f"support: {count:,} of {all_points:,} points; the logits without the others {same}"


def exact_support(model: nn.Module, points: Float[Tensor, "n d"]) -> Support | None:
    """Find the points on which a model's prediction for one cloud depends, and check it by leaving the others out.

    A point is in the support if the pooled vectors have a gradient with respect to its encoded row: it is zero for a
    row that wins no maximum, or that has a weight of zero under sparsemax.

    Args:
        model: a zoo model.
        points: [n, d], prepared for the model; see `model.prepare`.

    Returns:
        The support; None if the model has none: all points have a weight, or points interact before the pooling.

    Example:
        >>> from pointset.explain import exact_support
        >>> support = exact_support(pointset.create_model("rff-max", classes=2, dim=4), test.points[0])
        >>> int(support.points.sum()) <= 4, support.change < 1e-5
        (True, True)
    """
    cloud = as_cloud_of(model, points)
    if not isinstance(model, SetClassifier):
        return None
    cloud = model.with_numbers(cloud[None].to(next(model.parameters()).device))
    with in_evaluation_mode(model):
        support = _rows_with_gradient(model, cloud)
        if support.all() or not support.any():
            return None
        with torch.no_grad():
            logits, without = model(cloud), model(cloud[:, support])
    change = float((logits - without).abs().max())
    if change > LARGEST_CHANGE * float(logits.abs().max()):
        return None
    return Support(support.cpu(), change)


def _rows_with_gradient(model: SetClassifier, cloud: Tensor) -> Tensor:
    """True [n] for the rows that have a gradient in the pooled vectors."""
    with torch.enable_grad():
        rows = model.encode(cloud).detach().requires_grad_()
        pooled = model.pool(rows, None)
        # Two directions: in one, the gradients of a row might cancel by chance.
        generator = torch.Generator().manual_seed(0)
        support = torch.zeros(cloud.shape[1], dtype=torch.bool, device=cloud.device)
        for _ in range(2):
            direction = torch.randn(pooled.shape, generator=generator).to(pooled)
            (gradient,) = torch.autograd.grad(pooled, rows, direction, retain_graph=True)
            support |= (gradient[0] != 0).any(dim=1)
    return support


def support_map(support: Support) -> AttentionMap:
    """Return the support as an attention map with equal weights of its points, for figures.

    Args:
        support: what `exact_support` returns.

    Returns:
        A map of one head and one query over the points.
    """
    weights = support.points.float()
    return AttentionMap("support", "support", (weights / weights.sum())[None, None], "keys")
