"""Classical features of upright shapes and of their surfaces: occupancy, moments, distributions, neighbourhoods."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.baselines.descriptors import (
    HISTOGRAM_BINS,
    NEIGHBOURHOOD_SHARES,
    PAIR_WIDTH,
    REACH,
    cells_of,
    distributions,
    histogram,
    scaled,
    shares_in,
    surface_histograms,
)

CELLS, RINGS, LEVELS, SECTIONS = 6, 6, 8, 8
QUANTILES = (0.02, 0.25, 0.5, 0.75, 0.98)


class ShapeFeatures(nn.Module):
    """Features [B, width] of clouds [B, n, 3] with Z up; they do not depend on position and scale.

    Occupancy of a grid of 6 x 6 x 6 cells and of 6 rings at 8 heights (Vranic and Saupe 2001 give such features an
    overview), the moments of order 2 to 4, distributions of distances, areas and angles of random points (D1, D2, D3
    and A3 of Osada et al., *Shape distributions*, ACM Transactions on Graphics 2002), standard deviations along the
    principal axes, extents, quantiles of the coordinates, and the spread of 8 horizontal sections.
    """

    width = CELLS**3 + RINGS * LEVELS + 31 + 120 + 26 + 3 * SECTIONS

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the features of the coordinates; all points are real."""
        X = scaled(X[..., :3])
        blocks = (_occupancy(X), _rings(X), _moments(X), distributions(X), _extents(X), _sections(X))
        return torch.cat(blocks, dim=1)


def _occupancy(X: Tensor) -> Tensor:
    x, y, z = cells_of(X, -REACH, REACH, CELLS).unbind(dim=2)
    return shares_in((x * CELLS + y) * CELLS + z, CELLS**3)


def _rings(X: Tensor) -> Tensor:
    rings = cells_of(X[..., :2].norm(dim=2), 0.0, 1.1 * REACH, RINGS)
    return shares_in(rings * LEVELS + cells_of(X[..., 2], -1.1 * REACH, 1.1 * REACH, LEVELS), RINGS * LEVELS)


def _moments(X: Tensor) -> Tensor:
    """The k-th roots of the moments of order k."""
    x, y, z = X.unbind(dim=2)
    moments = []
    for a, b, c in itertools.product(range(5), repeat=3):
        if 2 <= a + b + c <= 4:
            moment = (x**a * y**b * z**c).mean(dim=1)
            moments.append(moment.sign() * moment.abs() ** (1 / (a + b + c)))
    return torch.stack(moments, dim=1)


def _extents(X: Tensor) -> Tensor:
    covariance = X.mT @ X / X.shape[1]
    axes = [torch.linalg.eigvalsh(matrix).clamp(min=0).sqrt() for matrix in (covariance, covariance[:, :2, :2])]
    extents = X.amax(dim=1) - X.amin(dim=1)
    longest = extents.amax(dim=1, keepdim=True).clamp(min=torch.finfo(X.dtype).tiny)
    quantiles = torch.quantile(X, torch.tensor(QUANTILES, dtype=X.dtype, device=X.device), dim=1)
    return torch.cat([*axes, extents, extents / longest, quantiles.transpose(0, 1).flatten(1)], dim=1)


def _heights(X: Tensor) -> Tensor:
    """Heights of points [B, n], from 0 for the lowest of a cloud to 1 for the highest."""
    z = X[..., 2]
    low, high = z.amin(dim=1, keepdim=True), z.amax(dim=1, keepdim=True)
    return (z - low) / (high - low).clamp(min=1e-9)


def _sections(X: Tensor) -> Tensor:
    """Standard deviations along x and y, and the square root of the share of points, of each horizontal section."""
    inside = nn.functional.one_hot(cells_of(_heights(X), 0.0, 1.0, SECTIONS), SECTIONS).to(X.dtype)  # [B, n, sections]
    counts = inside.sum(dim=1).clamp(min=1)[:, :, None]
    means = inside.mT @ X[..., :2] / counts
    variances = inside.mT @ X[..., :2].square() / counts - means.square()
    return torch.cat([variances.clamp(min=0).sqrt().flatten(1), inside.mean(dim=1).sqrt()], dim=1)


class SurfaceFeatures(nn.Module):
    """Features [B, width] of clouds [B, n, 3] with Z up; they do not depend on position and scale.

    For neighbourhoods of several sizes: histograms of linearity, planarity and scattering (Demantke et al.,
    *Dimensionality based scale selection in 3D lidar point clouds*, 2011), of their radii, of the offsets of their
    centres and of the slopes of their normals. Histograms of two angles between random pairs of points with normals
    (as in the features of Wahl, Hillenbrand and Hirzinger, *Surflet-pair-relation histograms*, 2003) by their distance;
    of the slopes by height.
    """

    width = 6 * HISTOGRAM_BINS * len(NEIGHBOURHOOD_SHARES) + PAIR_WIDTH + 4 * 6 + 10

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the features of the coordinates; all points are real."""
        neighbourhoods, pairs, Q, normals = surface_histograms(scaled(X[..., :3]))
        return torch.cat([*neighbourhoods, *pairs, *_slopes(Q, normals)], dim=1)


def _slopes(Q: Tensor, normals: Tensor) -> list[Tensor]:
    """Slopes of the normals by height, and how much they point away from the vertical axis."""
    away = (nn.functional.normalize(Q[..., :2], dim=2) * normals[..., :2]).sum(dim=2).abs()
    slopes = histogram(normals[..., 2].abs(), 0, 1, 4, _heights(Q), 1.0, 6)
    return [slopes, histogram(away, 0, 1, 10)]
