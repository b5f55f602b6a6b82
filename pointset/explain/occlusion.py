"""Occlusion: remove points to find those that a prediction depends on. A check of attention maps."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pointset.data.sampling import farthest_points
from pointset.errors import PointsetError
from pointset.explain.maps import as_cloud_of
from pointset.nn.layers import in_evaluation_mode
from pointset.zoo.predicting import embed_rows

PATCHES = 48


@dataclass(frozen=True, eq=False)
class Occlusion:
    """How much one class depends on each point of one cloud.

    Example:
        >>> from pointset.explain.occlusion import occlusion_influence
        >>> measured = occlusion_influence(model.eval(), test.points[0], label=1)
        >>> measured.label, measured.neighbours, measured.log_probability < 0
        (1, 2, True)
    """

    influence: Tensor
    """[n]: decrease of the log-probability of the class, in nats, when the point and its neighbours are removed."""
    label: int
    """Index of the class."""
    log_probability: float
    """Log-probability of the class with all points, in nats."""
    neighbours: int
    """Number of points removed at a time."""


def occlusion_influence(
    model: nn.Module,
    points: Tensor,
    label: int | None = None,
    *,
    neighbours: int | None = None,
    batch_size: int = 64,
) -> Occlusion:
    """Remove each point with its nearest neighbours, by masking them, and measure the change of the prediction.

    In a dense cloud, the neighbours of a point can replace it, so a small patch is removed at a time, as Zeiler and
    Fergus (arXiv 1311.2901, section 4.2) occlude squares of an image. The model is evaluated on n clouds.

    Args:
        model: called as `model(points [B, n, 3], mask [B, n]) -> logits [B, classes]`.
        points: [n, 3], one cloud.
        label: index of the class; None means the predicted class.
        neighbours: number of points to remove at a time, the point itself included; None means n / 16.
        batch_size: clouds per forward pass.

    Returns:
        The decrease of the log-probability of the class for each point.

    Raises:
        PointsetError: the cloud is not [n, 3] with n at least 2 or does not fit the model, `neighbours` leaves no
            point, or the class does not exist.

    Example:
        >>> from pointset.explain.occlusion import occlusion_influence
        >>> occlusion_influence(model.eval(), test.points[0], neighbours=4).influence.shape
        torch.Size([32])
    """
    points = as_cloud_of(model, points, least=2)
    n = len(points)
    removed = max(1, n // 16) if neighbours is None else neighbours
    if not 1 <= removed < n:
        raise PointsetError(f"neighbours must be 1 to {n - 1} of {n} points, got {removed}")
    device = next(model.parameters()).device
    points = points.to(device)
    # Not by matrix products: far from the origin, their rounding errors are as large as the distances.
    coordinates = points[:, :3]
    distances = torch.cdist(coordinates, coordinates, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(-1.0)  # so that a point itself precedes its duplicates
    near = distances.topk(removed, largest=False).indices  # [n, removed]
    masks = torch.ones(n, n, dtype=torch.bool, device=device).scatter(1, near, False)
    with torch.no_grad(), in_evaluation_mode(model):
        whole = model(points[None], torch.ones(1, n, dtype=torch.bool, device=device)).log_softmax(dim=1)[0]
        label = int(whole.argmax()) if label is None else label
        if not 0 <= label < len(whole):
            raise PointsetError(f"label must be in [0, {len(whole)}), got {label}")
        without = [
            model(points.expand(len(batch), -1, -1), batch).log_softmax(dim=1)[:, label]
            for batch in masks.split(batch_size)
        ]
    influence = whole[label] - torch.cat(without)
    return Occlusion(influence.cpu(), label, float(whole[label]), removed)


def similarity_influence(model: nn.Module, points: Tensor, row: Tensor, *, patches: int = PATCHES) -> Tensor:
    """Remove one patch of a cloud after another, and measure how much farther its embedding gets from another one.

    As `occlusion_influence`, for a distance in place of a class. The patches are the points
    nearest to farthest points, so that each point is in one patch.

    Args:
        model: with `embed_sets`; see `pointset.embed`.
        points: [n, d], one cloud, normalised.
        row: [width], the embedding of the other shape.
        patches: number of patches.

    Returns:
        [n]: the increase of the distance when the point's patch is removed; negative where the patch is different.

    Example:
        >>> from pointset.explain.occlusion import similarity_influence
        >>> row = torch.from_numpy(pointset.embed(model, test)[1])
        >>> similarity_influence(model, test.points[0], row, patches=4).shape
        torch.Size([32])
    """
    points = as_cloud_of(model, points, least=2)
    coordinates = points[:, :3]
    centres = farthest_points(coordinates.numpy(), min(patches, len(points)), start=0)
    patch = torch.cdist(coordinates, coordinates[torch.as_tensor(centres)]).argmin(dim=1)
    masks = patch != torch.arange(len(centres))[:, None]  # [patches, n]
    masks = torch.cat([torch.ones(1, len(points), dtype=torch.bool), masks])
    rows = embed_rows(model, [(points.expand(len(masks), -1, -1), masks)]).cpu()
    distances = (rows - row).norm(dim=1)
    return (distances[1:] - distances[0])[patch]


def agreement(first: Tensor, second: Tensor) -> float:
    """Spearman's rank correlation of two measures of the same points [n]: 1 for the same order, 0 for no correlation.

    A p-value is not given: neighbouring points have similar values, so n points are not n independent observations.
    Compare the correlation with that for an untrained model, or for another measure.

    Args:
        first, second: [n] each.

    Returns:
        The correlation, from -1 to 1; 0 if a measure is constant.

    Raises:
        PointsetError: the measures are not vectors of the same length, at least 3, or a value is NaN.

    Example:
        >>> from pointset.explain.occlusion import agreement
        >>> round(agreement(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 4.0, 9.0])), 6)
        1.0
    """
    from scipy.stats import spearmanr

    if first.dim() != 1 or first.shape != second.shape or len(first) < 3:
        raise PointsetError(f"measures must be two vectors [n], got {list(first.shape)} and {list(second.shape)}")
    pair = torch.stack([first, second]).double().cpu()
    if bool(pair.isnan().any()):
        raise PointsetError("values must not be NaN, which has no rank: leave the point out of both vectors")
    is_constant = bool((pair.amin(dim=1) == pair.amax(dim=1)).any())
    return 0.0 if is_constant else float(spearmanr(*pair.numpy()).statistic)
