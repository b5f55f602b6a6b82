"""Importance of points for a prediction: critical points, exact support, attention rollout, occlusion."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.explain.recording import explain_each
from pointset.nn.layers import in_evaluation_mode
from pointset.nn.pooling.statistics import MaxPool
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.predicting import predict

LARGEST_CHANGE = 1e-4
"""Largest change of a logit that still counts as rounding, relative to the largest logit."""


def critical_points(model: nn.Module, shape: Any) -> Any:
    """Count, for each point, the features in which the max pooling selects this point.

    The points with counts above 0 are the critical point set (Qi et al., PointNet, arXiv 1612.00593, section 4.3).
    Removing the encoder outputs of all other points does not change the pooled vector. If several points have the
    largest value of a feature, only the first of them is counted.

    Args:
        model: a zoo model that pools by max, such as rff-max or isab16-max. If its encoder has attention, the encoder
            output of a point also depends on other points.
        shape: any input of `model.predict`. Of an array or a tensor [n, 3], all points are used, but repeated points
            only once. Of a file or a mesh, the points of `model.prepare(shape)` are used.

    Returns:
        The counts, int64 [n]. Their sum is the width of the pooled vector. For several shapes, a list of counts.

    Raises:
        PointsetError: the model does not pool by max, or the shape cannot be prepared.

    Example:
        >>> from pointset.explain.importance import critical_points
        >>> counts = critical_points(pointset.create_model("rff-max", classes=2, dim=16), test.points[0])
        >>> counts.shape, int(counts.sum())
        (torch.Size([32]), 16)
    """
    return explain_each(model, shape, partial(count_maxima, model))


def count_maxima(model: nn.Module, points: Tensor) -> Tensor:
    """Return the result of `critical_points` for a prepared cloud [n, d]."""
    if not isinstance(model, SetClassifier) or not isinstance(model.pool, MaxPool):
        name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
        raise PointsetError(f"{name} does not pool by max: critical points need a model such as rff-max")
    with torch.no_grad(), in_evaluation_mode(model):
        rows = model.encode(points[None].to(next(model.parameters()).device))[0]
    return torch.bincount(rows.argmax(dim=0).cpu(), minlength=len(points))


@dataclass(frozen=True, eq=False)
class Support:
    """The support of one prediction."""

    points: Bool[Tensor, " n"]
    """True at points in the support."""
    change: float
    """Largest change of a logit when all points outside the support are left out."""

    def as_dict(self) -> dict[str, Any]:
        """Return the size of the support, the number of points and the change, for JSON."""
        return {"support": int(self.points.sum()), "points": len(self.points), "change": self.change}

    def __str__(self) -> str:
        count, all_points = int(self.points.sum()), len(self.points)
        same = "are equal" if self.change == 0 else f"differ by at most {self.change:.0e}"
        return f"support: {count:,} of {all_points:,} points; the logits without the others {same}"


def exact_support(model: nn.Module, shape: Any) -> Any:
    """Return the support of a prediction: the points with non-zero pooling weight.

    A point is in the support if the pooled vectors have a non-zero gradient with respect to the encoder output of the
    point. The gradient is zero for outputs without a maximum (max pooling) and for outputs of weight 0 (sparsemax). To
    check the support, the logits are computed again from the points of the support alone, with local features that were
    computed from the whole cloud.

    Args:
        model: a zoo model.
        shape: see `critical_points`.

    Returns:
        The `Support`, or None if all points have non-zero weight or if points interact before the pooling. For several
        shapes, a list.

    Example:
        >>> from pointset.explain import exact_support
        >>> support = exact_support(pointset.create_model("rff-max", classes=2, dim=4), test.points[0])
        >>> int(support.points.sum()) <= 4, support.change < 1e-5
        (True, True)
    """
    return explain_each(model, shape, partial(support_of, model))


def support_of(model: nn.Module, cloud: Tensor) -> Support | None:
    """Return the result of `exact_support` for a prepared cloud [n, d]."""
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
    """Return bool [n]: True where the gradient of the pooled vectors with respect to an encoder output is not zero."""
    with torch.enable_grad():
        rows = model.encode(cloud).detach().requires_grad_()
        pooled = model.pool(rows, None)
        # Two random directions are used, because in a single one the gradients of a row might cancel by chance.
        generator = torch.Generator().manual_seed(0)
        support = torch.zeros(cloud.shape[1], dtype=torch.bool, device=cloud.device)
        for _ in range(2):
            direction = torch.randn(pooled.shape, generator=generator).to(pooled)
            (gradient,) = torch.autograd.grad(pooled, rows, direction, retain_graph=True)
            support |= (gradient[0] != 0).any(dim=1)
    return support


def support_map(support: Support) -> AttentionMap:
    """Return the support as an attention map for figures. All points of the support have the same weight.

    Args:
        support: a result of `exact_support`.

    Returns:
        A map of one head and one query over the points.
    """
    weights = support.points.float()
    return AttentionMap("support", "support", (weights / weights.sum())[None, None], "keys")


def rollout(maps: Sequence[AttentionMap]) -> Tensor:
    """Return the attention rollout of each pooled vector (Abnar and Zuidema, arXiv 2005.00928, section 3).

    Heads are averaged, and the residual connection gets weight 0.5: A' = 0.5 I + 0.5 A, where A is the map of a SAB, or
    the matrix product of the maps "writes" and "reads" of an ISAB. The map of the pooling is multiplied by the A' of
    all blocks, from the last to the first.

    Rollout ignores values, feed-forward layers, norms, the size of the residual, and joined poolings without attention.
    Rollout traces attention back to the points, but does not measure on which points the prediction depends.

    Args:
        maps: all maps of a model for one cloud, in the order of `attention_maps`.

    Returns:
        [k, n]: the share of each point in each of the k pooled vectors. Rows sum to 1.

    Raises:
        PointsetError: the model does not pool by attention, the maps are of a batch, or maps of the forward pass are
            missing.

    Example:
        >>> from pointset.explain.importance import rollout
        >>> shares = rollout(pointset.attention_maps(model, test.points[0]))
        >>> shares.shape, float(shares.sum().round(decimals=4))
        (torch.Size([1, 32]), 1.0)
    """
    if any(entry.weights.dim() != 3 for entry in maps):
        raise PointsetError("rollout needs the maps of one cloud, got a batch: give [entry[0] for entry in maps]")
    pooling = [index for index, entry in enumerate(maps) if entry.kind == "pools"]
    if len(pooling) != 1:
        raise PointsetError(f"rollout needs one map of kind 'pools', got {len(pooling)}: see critical_points for max")
    kinds = [(entry.kind, entry.layer.removesuffix(entry.kind)) for entry in maps]
    reads = {(index, block) for index, (kind, block) in enumerate(kinds) if kind == "reads"}
    writes = {(index - 1, block) for index, (kind, block) in enumerate(kinds) if kind == "writes"}
    for _, block in sorted(reads ^ writes):  # the two maps of an ISAB must follow each other
        wrong = f"{block}reads is not followed by {block}writes: rollout needs all maps of a model in their order"
        raise PointsetError(f"{wrong}; for the encoder dumlp, which writes back without attention, use occlusion")
    for entry in maps:
        if (entry.weights.sum(dim=-1) - 1).abs().max() > 1e-3 or entry.weights.min() < 0:
            raise PointsetError(f"rollout needs rows that sum to 1, and {entry.layer} has other rows: use occlusion")
    averaged = [entry.heads("mean").weights[0] for entry in maps]
    shares = averaged[pooling[0]]
    for entry, weights in zip(maps[pooling[0] + 1 :], averaged[pooling[0] + 1 :], strict=True):
        if entry.points_are == "neither":
            shares = 0.5 * shares + 0.5 * weights @ shares
    for entry, weights in reversed(list(zip(maps[: pooling[0]], averaged[: pooling[0]], strict=True))):
        if entry.kind == "writes":
            kept, shares = shares, shares @ weights  # [k, m]: shares of the inducing points
        elif entry.kind == "reads":
            shares = 0.5 * kept + 0.5 * shares @ weights
        else:
            shares = 0.5 * shares + 0.5 * shares @ weights
    return shares / torch.clamp(shares.sum(dim=1, keepdim=True), min=1e-12)


def occlusion_influence(
    model: nn.Module, shape: Any, label: int | None = None, *, neighbours: int | None = None
) -> Any:
    """Mask each point together with its nearest neighbours, and measure the change of the prediction.

    A single point is seldom important, because its neighbours are similar. Therefore a patch is removed at a time, as
    Zeiler and Fergus (arXiv 1311.2901, section 4.2) occlude squares of an image. The model is evaluated once per point
    and once on the whole cloud.

    Args:
        model: called as `model(points [B, n, 3], mask [B, n]) -> logits [B, classes]`.
        shape: a shape as in `critical_points`, or points [n, 3] if the model is not of the zoo. Local features are
            those of the whole cloud.
        label: index of the class. None means the predicted class.
        neighbours: number of points to remove at a time, including the point itself. None means n / 16.

    Returns:
        [n]: the decrease of the log-probability of the class, in nats, when the point and its neighbours are removed.
        For several shapes, a list.

    Raises:
        PointsetError: the shape has fewer than 2 points, the shape does not fit the model, `neighbours` would remove
            all points, or the class does not exist.

    Example:
        >>> from pointset.explain.importance import occlusion_influence
        >>> occlusion_influence(model.eval(), test.points[0], neighbours=4).shape
        torch.Size([32])
    """
    return explain_each(model, shape, lambda points: occlude(model, points, label, neighbours), least=2)


def occlude(model: nn.Module, points: Tensor, label: int | None = None, neighbours: int | None = None) -> Tensor:
    """Return the result of `occlusion_influence` for a prepared cloud [n, d] of at least 2 points."""
    n = len(points)
    removed = max(1, n // 16) if neighbours is None else neighbours
    if not 1 <= removed < n:
        raise PointsetError(f"neighbours must be 1 to {n - 1} of {n} points, got {removed}")
    # Matrix products are avoided, because far from the origin their rounding errors are as large as the distances.
    coordinates = points[:, :3]
    distances = torch.cdist(coordinates, coordinates, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(-1.0)  # so that each point precedes its duplicates
    near = distances.topk(removed, largest=False).indices  # [n, removed]
    masks = torch.ones(n + 1, n, dtype=torch.bool)  # the first mask keeps the whole cloud
    masks[1:].scatter_(1, near, False)
    logs = masked_logits(model, points, masks).log_softmax(dim=1)
    label = int(logs[0].argmax()) if label is None else label
    if not 0 <= label < logs.shape[1]:
        raise PointsetError(f"label must be in [0, {logs.shape[1]}), got {label}")
    return logs[0, label] - logs[1:, label]


def masked_logits(model: nn.Module, points: Tensor, masks: Tensor) -> Tensor:
    """Return the logits [B, classes] of a cloud [n, inputs] with each of the masks [B, n], on the CPU."""
    return predict(model, [(points.expand(len(masks), -1, -1), masks)]).logits.cpu()
