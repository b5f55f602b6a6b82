"""Which points make two shapes similar to a model."""

import torch
from torch import Tensor, nn

from pointset.data.sampling import farthest_points
from pointset.explain.maps import as_cloud_of
from pointset.zoo.predicting import embed_rows

PATCHES = 48


def similarity_influence(model: nn.Module, points: Tensor, row: Tensor, *, patches: int = PATCHES) -> Tensor:
    """Remove one patch of a cloud after another, and measure how much farther its embedding gets from another one.

    As `pointset.explain.occlusion.occlusion_influence`, for a distance in place of a class. The patches are the points
    nearest to farthest points, so that each point is in one patch.

    Args:
        model: with `embed_sets`; see `pointset.embed`.
        points: [n, d], one cloud, normalised.
        row: [width], the embedding of the other shape.
        patches: number of patches.

    Returns:
        [n]: the increase of the distance when the point's patch is removed; negative where the patch is different.

    Example:
        >>> from pointset.explain.similarity import similarity_influence
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
