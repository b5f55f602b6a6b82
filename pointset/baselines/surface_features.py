"""Classical features of the surface: what the neighbourhoods of points look like, and how they are turned."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.baselines.shape_features import histogram

QUERIES = 512
"""Points whose neighbourhoods are described, if a cloud has as many."""
SHARES = (1 / 128, 1 / 64, 1 / 32, 1 / 8)
"""Sizes of the neighbourhoods, as shares of the points."""
NORMALS = 1
"""The neighbourhood that the normals are from, by its index."""
PAIRS = 4096
BINS = 8


class SurfaceFeatures(nn.Module):
    """Features [B, width] of clouds [B, n, 3] with Z up; they do not depend on position and scale.

    For neighbourhoods of several sizes: histograms of linearity, planarity and scattering (Demantke et al.,
    *Dimensionality based scale selection in 3D lidar point clouds*, 2011), of their radii, of the offsets of their
    centres and of the slopes of their normals. Histograms of two angles between random pairs of points with normals
    (as in the features of Wahl, Hillenbrand and Hirzinger, *Surflet-pair-relation histograms*, 2003) by their distance;
    of the slopes by height.
    """

    width = 6 * BINS * len(SHARES) + 2 * 4 * 6 + 4 * 6 + 10

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the features; all points are real."""
        X = X - X.mean(dim=1, keepdim=True)
        radius = X.square().sum(dim=2).mean(dim=1).sqrt()
        X = X / radius.clamp(min=torch.finfo(X.dtype).tiny)[:, None, None]
        generator = torch.Generator().manual_seed(0)
        Q = X[:, torch.randperm(X.shape[1], generator=generator)[:QUERIES].to(X.device)]
        blocks, normals = _neighbourhoods(Q, X)
        return torch.cat([*blocks, *_pairs(Q, normals, generator), *_slopes(Q, normals)], dim=1)


def _neighbourhoods(Q: Tensor, X: Tensor) -> tuple[list[Tensor], Tensor]:
    """Histograms of the neighbourhoods of Q [B, q, 3] in X [B, n, 3], and the normals [B, q, 3]."""
    sizes = [min(max(5, round(share * X.shape[1])) + 1, X.shape[1]) for share in SHARES]
    distances = torch.cdist(Q, X, compute_mode="donot_use_mm_for_euclid_dist")
    distances, indices = distances.topk(max(sizes), dim=2, largest=False)
    around = X.gather(1, indices.flatten(1)[..., None].expand(-1, -1, 3)).view(*indices.shape, 3) - Q[:, :, None]
    blocks, normals = [], Q
    for scale, size in enumerate(sizes):
        inside = around[:, :, :size]
        centre = inside.mean(dim=2)
        covariance = inside.mT @ inside / size - centre[..., None] * centre[..., None, :]
        values, vectors = torch.linalg.eigh(covariance)
        small, middle, large = values.clamp(min=1e-12).sqrt().unbind(dim=2)
        reach = distances[:, :, size - 1].clamp(min=1e-9)
        blocks += [
            histogram((large - middle) / large, 0, 1, BINS),
            histogram((middle - small) / large, 0, 1, BINS),
            histogram(small / large, 0, 0.6, BINS),
            histogram(reach.log(), math.log(0.02), math.log(1.5), BINS),
            histogram(centre.norm(dim=2) / reach, 0, 1, BINS),
            histogram(vectors[..., 2, 0].abs(), 0, 1, BINS),
        ]
        normals = vectors[..., 0] if scale == NORMALS else normals
    return blocks, normals


def _pairs(Q: Tensor, normals: Tensor, generator: torch.Generator) -> list[Tensor]:
    first, second = torch.randint(Q.shape[1], (2, PAIRS), generator=generator).to(Q.device)
    between = Q[:, first] - Q[:, second]
    distance = between.norm(dim=2)
    turned = (normals[:, first] * normals[:, second]).sum(dim=2).abs()
    seen = nn.functional.cosine_similarity(between, normals[:, first], dim=2).abs()
    return [histogram(angle, 0, 1, 4, distance, 4.0, 6) for angle in (turned, seen)]


def _slopes(Q: Tensor, normals: Tensor) -> list[Tensor]:
    """Slopes of the normals by height, and how much they point away from the vertical axis."""
    z = Q[..., 2]
    low, high = z.amin(dim=1, keepdim=True), z.amax(dim=1, keepdim=True)
    away = (nn.functional.normalize(Q[..., :2], dim=2) * normals[..., :2]).sum(dim=2).abs()
    slopes = histogram(normals[..., 2].abs(), 0, 1, 4, (z - low) / (high - low).clamp(min=1e-9), 1.0, 6)
    return [slopes, histogram(away, 0, 1, 10)]
