"""Faithfulness of explanations: how the predicted probability changes when important points are removed or added.

An explanation gives each point an importance. Deletion removes the most important points first, and insertion begins
with the most important points and adds the others (Petsiuk et al., RISE, arXiv 1806.07421, section 4.2). The curves are
the probability of the predicted class against the share of points. For a faithful explanation, the area under the
deletion curve is small, and the area under the insertion curve is large. The baseline is a random order of the points.
It is strong for insertion, because a few random points often show the whole shape.
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
"""Shares of the points that are removed (deletion) or not yet inserted (insertion)."""
INTEGRATED = (torch.arange(32) + 0.5) / 32
"""Factors by which the points are scaled for integrated gradients (Sundararajan et al., arXiv 1703.01365)."""
Explanation = Callable[[nn.Module, Tensor, int], Tensor]
"""A function (model, points [n, inputs], label) -> importance [n], where `label` is the index of a class."""


def attention(model: nn.Module, points: Tensor, label: int) -> Tensor:
    """Return the attention [n] of the pooling, averaged over heads, seeds and joined poolings. `label` is not used."""
    maps = record_maps(model, points)
    pools = [pool.relative().mean(dim=(0, 1)) for pool in maps if (pool.kind, pool.points_are) == ("pools", "keys")]
    if not pools:
        raise PointsetError("the model does not pool by attention")
    return torch.stack(pools).mean(dim=0)


def gradients(model: nn.Module, points: Tensor, label: int, scales: Tensor) -> Tensor:
    """Return the importance [n]: points times the gradient of the logit, averaged over scaled copies of the points."""
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
"""Explanations by name. Attention, rollout and critical points do not depend on the class."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Probabilities of the predicted class when points are removed in the order of one explanation."""

    deletion: Float[ndarray, "shapes shares"]
    """Probabilities without the most important points, for each of `REMOVED_SHARES`."""
    insertion: Float[ndarray, "shapes shares"]
    """Probabilities with only the most important points, for each of `REMOVED_SHARES`."""

    @property
    def areas(self) -> dict[str, Float[ndarray, " shapes"]]:
        """The normalised area under each curve (its mean probability) for each shape, by the name of the curve."""
        span = REMOVED_SHARES[-1] - REMOVED_SHARES[0]
        return {
            "deletion": np.trapezoid(self.deletion, REMOVED_SHARES, axis=1) / span,
            "insertion": np.trapezoid(self.insertion, REMOVED_SHARES, axis=1) / span,
        }


def check_explanations(
    model: nn.Module, shapes: Any, explanations: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Curves]:
    """Return the deletion and insertion curves of explanations, and of a random order of the points.

    Args:
        model: a classifier, called as `model(points [B, n, inputs], mask [B, n]) -> logits [B, classes]`.
        shapes: shapes as in `critical_points`, or points [n, 3] if the model is not of the zoo.
        explanations: names from `EXPLANATIONS`. None means all explanations that the model allows.
        seed: seed of the random order.

    Returns:
        The curves of all shapes, by the name of the explanation or "random".

    Raises:
        PointsetError: an explanation is unknown, an explanation cannot be computed for the model, or there is no shape.

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
    """Return the result of `check_explanations` for prepared clouds [n, d]."""
    if not clouds:
        raise PointsetError("explanations are checked on shapes, got 0 clouds")
    if unknown := set(explanations or ()) - set(EXPLANATIONS):
        raise PointsetError(f"{sorted(unknown)[0]!r} is not an explanation: use {', '.join(EXPLANATIONS)}")
    generator = torch.Generator().manual_seed(seed)
    curves: dict[str, list[tuple[ndarray, ndarray]]] = {}
    lacking = () if explanations else (PointsetError,)  # skip what cannot be computed for the model
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
