"""Shape descriptors of the baselines: distributions of distances and angles, and histograms of local geometry."""

import math

import numpy as np
import torch
from torch import Tensor, nn

REACH = 2.0
"""Half the side of the occupancy grid, in root mean square radii: few points of a shape lie outside."""
PAIRS = 4096
"""Random pairs and triples of points for the shape distributions; the same for every shape of one size."""
QUERIES = 512
"""Points whose neighbourhoods are described, if a cloud has as many."""
NEIGHBOURHOOD_SHARES = (1 / 128, 1 / 64, 1 / 32, 1 / 8)
"""Sizes of the neighbourhoods, as shares of the points."""
NORMALS_NEIGHBOURHOOD = 1
"""The neighbourhood that the normals are from, by its index."""
HISTOGRAM_BINS = 8
PAIR_WIDTH = 2 * 4 * 6
"""Columns of the histograms of pairs of normals."""


def scaled(X: Tensor) -> Tensor:
    """Clouds with mean 0 and a root mean square radius of 1.

    Points go from the centre outwards, so that which of them random numbers choose does not depend on their order.
    """
    X = X - X.mean(dim=1, keepdim=True)
    squares = X.square().sum(dim=2)
    X = X.gather(1, squares.argsort(dim=1)[..., None].expand_as(X))
    radius = squares.mean(dim=1).sqrt()
    return X / radius.clamp(min=torch.finfo(X.dtype).tiny)[:, None, None]


def shares_in(cells: Tensor, count: int) -> Tensor:
    """Square roots of the shares of points in each of `count` cells, [B, count], from cell numbers [B, n]."""
    shares = torch.zeros(len(cells), count, device=cells.device)
    shares.scatter_add_(1, cells, torch.ones(cells.shape, device=cells.device))
    return (shares / cells.shape[1]).sqrt()


def cells_of(values: Tensor, low: float, high: float, count: int) -> Tensor:
    """The number of the cell, of `count` between low and high, in which each value lies; the outer ones are open."""
    return ((values - low) / (high - low) * count).long().clamp(0, count - 1)


def histogram(
    values: Tensor, low: float, high: float, bins: int, second: Tensor | None = None, most: float = 1.0, rows: int = 1
) -> Tensor:
    """Square roots of the shares of values [B, n] in bins; with `second`, in `rows` times as many, by both."""
    cells = cells_of(values, low, high, bins)
    cells = cells if second is None else cells * rows + cells_of(second, 0.0, most, rows)
    return shares_in(cells, bins * rows)


def distributions(X: Tensor) -> Tensor:
    """Histograms [B, 120] of distances, areas and angles of random points; the last 32 columns need upright shapes."""
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
    """Histograms of neighbourhoods and of pairs of normals, and the points [B, q, 3] that they are of with normals."""
    generator = torch.Generator().manual_seed(0)
    Q = X[:, torch.randperm(X.shape[1], generator=generator)[:QUERIES].to(X.device)]
    neighbourhoods, normals = _neighbourhoods(Q, X)
    return neighbourhoods, _pairs(Q, normals, generator), Q, normals


def _neighbourhoods(Q: Tensor, X: Tensor) -> tuple[list[Tensor], Tensor]:
    """Histograms of the neighbourhoods of Q [B, q, 3] in X [B, n, 3], and the normals [B, q, 3]."""
    sizes = [min(max(5, round(share * X.shape[1])) + 1, X.shape[1]) for share in NEIGHBOURHOOD_SHARES]
    each = [_nearest(queries, points, max(sizes)) for queries, points in zip(Q, X, strict=True)]
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


def _nearest(Q: Tensor, X: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Distances and indices [q, count] of the nearest points of each query, by distance: in half of topk's time."""
    x, y, z = ((Q[:, None, axis] - X[:, axis]).square_() for axis in range(3))
    squares = x.add_(y).add_(z)
    if squares.device.type == "cpu":
        some = torch.from_numpy(np.argpartition(squares.numpy(), count - 1, axis=1)[:, :count])
        order = torch.from_numpy(squares.gather(1, some).numpy().argsort(axis=1))
        indices = some.gather(1, order)
    else:
        indices = squares.topk(count, largest=False).indices
    return squares.gather(1, indices).sqrt(), indices


def _pairs(Q: Tensor, normals: Tensor, generator: torch.Generator) -> list[Tensor]:
    first, second = torch.randint(Q.shape[1], (2, PAIRS), generator=generator).to(Q.device)
    between = Q[:, first] - Q[:, second]
    distance = between.norm(dim=2)
    turned = (normals[:, first] * normals[:, second]).sum(dim=2).abs()
    seen = nn.functional.cosine_similarity(between, normals[:, first], dim=2).abs()
    return [histogram(angle, 0, 1, 4, distance, 4.0, 6) for angle in (turned, seen)]
