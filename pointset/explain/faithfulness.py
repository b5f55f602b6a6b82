"""Faithfulness of explanations: does a prediction fall with the points that an explanation puts first?

An explanation gives each point an importance. Deletion removes the most important points first and follows the
probability of the predicted class; insertion begins with the most important points and adds the others (Petsiuk et al.,
RISE, arXiv 1806.07421, section 4.2). The area under the deletion curve is small for a faithful explanation, that under
the insertion curve large. A random order of the points is the baseline: it is not a bad one, since a set that lost
random points is still the same shape.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.importance import count_maxima, masked_logits, occlude, rollout
from pointset.explain.recording import explain_each, record_maps
from pointset.nn.layers import in_evaluation_mode

REMOVED_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Shares of the points that are removed, or that are not inserted yet."""
INTEGRATED = (torch.arange(32) + 0.5) / 32
"""Scales of integrated gradients from the origin to the points (Sundararajan et al., arXiv 1703.01365)."""
Explanation = Callable[[nn.Module, Tensor, int], Tensor]
"""The importance [n] of the points [n, inputs] of a cloud for a class of a model."""


def attention(model: nn.Module, points: Tensor, label: int) -> Tensor:
    """What the pooling attends to, mean over heads, seeds and joined poolings; independent of the class."""
    maps = record_maps(model, points)
    pools = [pool.relative().mean(dim=(0, 1)) for pool in maps if (pool.kind, pool.points_are) == ("pools", "keys")]
    if not pools:
        raise PointsetError("the model does not pool by attention")
    return torch.stack(pools).mean(dim=0)


def gradients(model: nn.Module, points: Tensor, label: int, scales: Tensor) -> Tensor:
    """The mean gradient of the logit at the points times each of the scales, times the points: [n]."""
    inputs = (scales[:, None, None].to(points) * points).requires_grad_()
    with torch.enable_grad():
        (slopes,) = torch.autograd.grad(model(inputs)[:, label].sum(), inputs)
    return (slopes.mean(dim=0) * points).sum(dim=1)


EXPLANATIONS: dict[str, Explanation] = {
    "attention": attention,
    "rollout": lambda model, points, label: rollout(record_maps(model, points)).mean(dim=0),
    "critical points": lambda model, points, label: count_maxima(model, points).float(),
    "gradient x input": lambda model, points, label: gradients(model, points, label, torch.ones(1)),
    "integrated gradients": lambda model, points, label: gradients(model, points, label, INTEGRATED),
    "occlusion": occlude,
}
"""By name. Attention, rollout and critical points are the same for all classes."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Probabilities of the predicted class along the order of one explanation."""

    deletion: Float[ndarray, "shapes shares"]
    """Without the most important points, for each of `REMOVED_SHARES`."""
    insertion: Float[ndarray, "shapes shares"]
    """With only the most important points, the same shares being left out."""

    @property
    def areas(self) -> dict[str, Float[ndarray, " shapes"]]:
        """Mean probability over the removed shares, "deletion" and "insertion", for each shape."""
        span = REMOVED_SHARES[-1] - REMOVED_SHARES[0]
        return {
            "deletion": np.trapezoid(self.deletion, REMOVED_SHARES, axis=1) / span,
            "insertion": np.trapezoid(self.insertion, REMOVED_SHARES, axis=1) / span,
        }


def check_explanations(
    model: nn.Module, shapes: Any, explanations: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Curves]:
    """Deletion and insertion curves of explanations, and of a random order of the points.

    Args:
        model: a classifier, called as `model(points [B, n, inputs], mask [B, n]) -> logits [B, classes]`.
        shapes: what `model.predict` takes, see `critical_points`; of a model that is not of the zoo, points [n, 3].
        explanations: names from `EXPLANATIONS`; None means all that the model has.
        seed: seed of the random order.

    Returns:
        By explanation, and for "random": the curves of all shapes.

    Raises:
        PointsetError: an explanation is unknown, or the model does not have it, or no shape is given.

    Example:
        >>> from pointset.explain.faithfulness import check_explanations
        >>> sorted(check_explanations(model.eval(), test.points[:2], ["attention"]))
        ['attention', 'random']
    """
    clouds = explain_each(model, shapes, lambda cloud: cloud, least=2)
    return curves_of(model, [clouds] if isinstance(clouds, Tensor) else clouds, explanations, seed)


def curves_of(
    model: nn.Module, clouds: Sequence[Tensor], explanations: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Curves]:
    """The curves of `check_explanations` for prepared clouds [n, d]."""
    if not clouds:
        raise PointsetError("explanations are checked on shapes, got 0 clouds")
    if unknown := set(explanations or ()) - set(EXPLANATIONS):
        raise PointsetError(f"{sorted(unknown)[0]!r} is not an explanation: use {', '.join(EXPLANATIONS)}")
    generator = torch.Generator().manual_seed(seed)
    curves: dict[str, list[tuple[ndarray, ndarray]]] = {}
    lacking = () if explanations else (PointsetError,)  # the model does not have it
    with in_evaluation_mode(model):
        for cloud in clouds:
            label = int(masked_logits(model, cloud, torch.ones(1, len(cloud), dtype=torch.bool)).argmax())
            importances: dict[str, Tensor] = {}
            for name in explanations or EXPLANATIONS:
                with suppress(*lacking):
                    importances[name] = EXPLANATIONS[name](model, cloud, label)
            importances["random"] = torch.rand(len(cloud), generator=generator)
            for name, importance in importances.items():
                curves.setdefault(name, []).append(_curves(model, cloud, label, importance))
    return {name: Curves(*(np.stack(column) for column in zip(*rows, strict=True))) for name, rows in curves.items()}


def _curves(model: nn.Module, cloud: Tensor, label: int, importance: Tensor) -> tuple[ndarray, ndarray]:
    rank = importance.cpu().argsort(descending=True, stable=True).argsort()  # 0 is the most important
    removed = torch.tensor([round(share * len(cloud)) for share in REMOVED_SHARES])[:, None]
    kept = torch.clamp(len(cloud) - removed, min=1)
    masks = torch.cat([rank >= len(cloud) - kept, rank < kept])
    probabilities = masked_logits(model, cloud, masks).softmax(dim=1)[:, label].double()
    deletion, insertion = probabilities.split(len(REMOVED_SHARES))
    return deletion.numpy(), insertion.numpy()
