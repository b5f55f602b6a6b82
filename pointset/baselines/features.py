"""Classical features of upright shapes and their surfaces: occupancy, moments, distributions and neighbourhoods."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

CELLS, RINGS, LEVELS, SECTIONS = 6, 6, 8, 8
QUANTILES = (0.02, 0.25, 0.5, 0.75, 0.98)
REACH = 2.0
"""Half the side length of the occupancy grid, in root mean square radii. Few points of a shape are outside the grid."""
PAIRS = 4096
"""Number of random pairs or triples of points in a histogram. Shapes with the same number of points have the same
pairs."""
QUERIES = 512
"""Maximum number of points for which neighbourhoods are described."""
NEIGHBOURHOOD_SHARES = (1 / 128, 1 / 64, 1 / 32, 1 / 8)
"""Sizes of the neighbourhoods, as shares of the points."""
NORMALS_NEIGHBOURHOOD = 1
"""Index of the neighbourhood size from which normals are computed."""
HISTOGRAM_BINS = 8
PAIR_WIDTH = 2 * 4 * 6
"""Number of columns of the histograms of pairs of normals."""
EXACT = "donot_use_mm_for_euclid_dist"


class ShapeFeatures(nn.Module):
    """Features [B, width] of clouds [B, n, 3] with Z up, invariant to translation and scale.

    They are: occupancy of a grid of 6 x 6 x 6 cells and of 6 rings at 8 heights (for such features see Vranic and Saupe
    2001); the moments of order 2 to 4; distributions of distances, areas and angles of random points (D1, D2, D3 and A3
    of Osada et al., *Shape distributions*, ACM Transactions on Graphics 2002); standard deviations along the principal
    axes; extents; quantiles of the coordinates; and the spread of points in 8 horizontal sections.
    """

    width = CELLS**3 + RINGS * LEVELS + 31 + 120 + 26 + 3 * SECTIONS

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the features of the coordinates of clouds without padding."""
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
    """Return the k-th roots of the moments of order k, with the sign of the moment."""
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
    """Return the heights of points [B, n], from 0 for the lowest point of a cloud to 1 for the highest."""
    z = X[..., 2]
    low, high = z.amin(dim=1, keepdim=True), z.amax(dim=1, keepdim=True)
    return (z - low) / (high - low).clamp(min=1e-9)


def _sections(X: Tensor) -> Tensor:
    """Return the deviations along x and y and the square root of the share of points, for each horizontal section."""
    inside = nn.functional.one_hot(cells_of(_heights(X), 0.0, 1.0, SECTIONS), SECTIONS).to(X.dtype)  # [B, n, sections]
    counts = inside.sum(dim=1).clamp(min=1)[:, :, None]
    means = inside.mT @ X[..., :2] / counts
    variances = inside.mT @ X[..., :2].square() / counts - means.square()
    return torch.cat([variances.clamp(min=0).sqrt().flatten(1), inside.mean(dim=1).sqrt()], dim=1)


class SurfaceFeatures(nn.Module):
    """Features [B, width] of clouds [B, n, 3] with Z up, invariant to translation and scale.

    For neighbourhoods of several sizes, they are histograms of linearity, planarity and scattering (Demantke et al.,
    *Dimensionality based scale selection in 3D lidar point clouds*, 2011), of radii, of the offsets of centres and of
    the slopes of normals. For random pairs of points, they are joint histograms of the distance with two angles of the
    normals (similar to Wahl, Hillenbrand and Hirzinger, *Surflet-pair-relation histograms*, 2003). The last features
    are a joint histogram of slope and height, and a histogram of how much normals point away from the vertical axis.
    """

    width = 6 * HISTOGRAM_BINS * len(NEIGHBOURHOOD_SHARES) + PAIR_WIDTH + 4 * 6 + 10

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the features of the coordinates of clouds without padding."""
        neighbourhoods, pairs, Q, normals = surface_histograms(scaled(X[..., :3]))
        return torch.cat([*neighbourhoods, *pairs, *_slopes(Q, normals)], dim=1)


def _slopes(Q: Tensor, normals: Tensor) -> list[Tensor]:
    """Return a histogram of slopes by height, and one of how much normals point away from the vertical axis."""
    away = (nn.functional.normalize(Q[..., :2], dim=2) * normals[..., :2]).sum(dim=2).abs()
    slopes = histogram(normals[..., 2].abs(), 0, 1, 4, _heights(Q), 1.0, 6)
    return [slopes, histogram(away, 0, 1, 10)]


def scaled(X: Tensor) -> Tensor:
    """Return clouds with mean 0 and a root mean square radius of 1.

    The points are sorted by their distance from the centre, so that the order of the input has no effect.
    """
    X = X - X.mean(dim=1, keepdim=True)
    squares = X.square().sum(dim=2)
    X = X.gather(1, squares.argsort(dim=1)[..., None].expand_as(X))
    radius = squares.mean(dim=1).sqrt()
    return X / radius.clamp(min=torch.finfo(X.dtype).tiny)[:, None, None]


def shares_in(cells: Tensor, count: int) -> Tensor:
    """Return the square roots of the shares of points in each cell, [B, count], from cell indices [B, n]."""
    shares = torch.zeros(len(cells), count, device=cells.device)
    shares.scatter_add_(1, cells, torch.ones(cells.shape, device=cells.device))
    return (shares / cells.shape[1]).sqrt()


def cells_of(values: Tensor, low: float, high: float, count: int) -> Tensor:
    """Return the cell index of each value, for `count` cells from low to high. The outermost cells are unbounded."""
    return ((values - low) / (high - low) * count).long().clamp(0, count - 1)


def histogram(
    values: Tensor, low: float, high: float, bins: int, second: Tensor | None = None, most: float = 1.0, rows: int = 1
) -> Tensor:
    """Return the square roots of the shares of values [B, n] in bins. With `second`, the histogram is joint."""
    cells = cells_of(values, low, high, bins)
    cells = cells if second is None else cells * rows + cells_of(second, 0.0, most, rows)
    return shares_in(cells, bins * rows)


def distributions(X: Tensor) -> Tensor:
    """Return histograms [B, 120] of distances, areas and angles of random points.

    The last 32 columns depend on the upward axis.
    """
    generator = torch.Generator().manual_seed(0)
    first, second, third = torch.randint(X.shape[1], (3, PAIRS), generator=generator).to(X.device)
    A, B, C = X[:, first], X[:, second], X[:, third]
    along, across = A - B, C - B
    areas = (torch.linalg.cross(along, across).norm(dim=2) / 2).sqrt()
    cosines = nn.functional.cosine_similarity(along, across, dim=2).clamp(-1, 1)
    measures = [
        (X.norm(dim=2), 1.25 * REACH, 16),
        (along.norm(dim=2), 2 * REACH, 32),
        (areas, 1.25 * REACH, 24),
        (cosines.acos(), math.pi, 16),
        (along[..., 2].abs(), 2 * REACH, 16),
        (along[..., :2].norm(dim=2), 2 * REACH, 16),
    ]
    return torch.cat([histogram(values, 0.0, high, bins) for values, high, bins in measures], dim=1)


def surface_histograms(X: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor]:
    """Return histograms of neighbourhoods and of pairs of normals, the points used [B, q, 3], and their normals."""
    generator = torch.Generator().manual_seed(0)
    Q = X[:, torch.randperm(X.shape[1], generator=generator)[:QUERIES].to(X.device)]
    neighbourhoods, normals = _neighbourhoods(Q, X)
    return neighbourhoods, _pairs(Q, normals, generator), Q, normals


def _neighbourhoods(Q: Tensor, X: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return histograms of the neighbourhoods of Q [B, q, 3] in X [B, n, 3], and the normals [B, q, 3]."""
    sizes = [min(max(5, round(share * X.shape[1])) + 1, X.shape[1]) for share in NEIGHBOURHOOD_SHARES]
    apart = (torch.cdist(queries, points, compute_mode=EXACT) for queries, points in zip(Q, X, strict=True))
    each = [distances.topk(max(sizes), largest=False) for distances in apart]
    distances, indices = (torch.stack(parts) for parts in zip(*each, strict=True))
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
            histogram((large - middle) / large, 0, 1, HISTOGRAM_BINS),
            histogram((middle - small) / large, 0, 1, HISTOGRAM_BINS),
            histogram(small / large, 0, 0.6, HISTOGRAM_BINS),
            histogram(reach.log(), math.log(0.02), math.log(1.5), HISTOGRAM_BINS),
            histogram(centre.norm(dim=2) / reach, 0, 1, HISTOGRAM_BINS),
            histogram(vectors[..., 2, 0].abs(), 0, 1, HISTOGRAM_BINS),
        ]
        normals = vectors[..., 0] if scale == NORMALS_NEIGHBOURHOOD else normals
    return blocks, normals


def _pairs(Q: Tensor, normals: Tensor, generator: torch.Generator) -> list[Tensor]:
    first, second = torch.randint(Q.shape[1], (2, PAIRS), generator=generator).to(Q.device)
    between = Q[:, first] - Q[:, second]
    distance = between.norm(dim=2)
    turned = (normals[:, first] * normals[:, second]).sum(dim=2).abs()
    seen = nn.functional.cosine_similarity(between, normals[:, first], dim=2).abs()
    return [histogram(angle, 0, 1, 4, distance, 4.0, 6) for angle in (turned, seen)]
