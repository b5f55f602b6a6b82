"""Poolings of sorted features against the papers' formulas, one set and one feature at a time."""

import math

import pytest
import torch
from torch import Tensor

from pointset.nn.pooling.fspool import FeaturewiseSortPool
from pointset.nn.pooling.pswe import FixedWassersteinPool, WassersteinPool

DIM = 3


def sets() -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(n, DIM, generator=generator, dtype=torch.float64) for n in (1, 2, 7, 20, 21, 64)]


@pytest.mark.parametrize("pieces", [1, 4, 20])
def test_fspool_is_the_papers_sum(pieces):
    pool = FeaturewiseSortPool(DIM, pieces).double()

    def weight(values: list[float], r: float) -> float:
        left = min(math.floor(r * pieces), pieces - 1)
        return values[left] + (r * pieces - left) * (values[left + 1] - values[left])

    for X in sets():
        falling = [sorted(feature, reverse=True) for feature in X.T.tolist()]
        expected = [
            sum(weight(values, i / max(1, len(X) - 1)) * x for i, x in enumerate(feature))
            for values, feature in zip(pool.values.tolist(), falling, strict=True)
        ]
        torch.testing.assert_close(pool(X[None])[0, 0], torch.tensor(expected, dtype=torch.float64))


def quantile(values: list[float], p: float) -> float:
    """Quantile of sorted values, with the i-th (from 1) at i / (n + 1); linear through the nearest two."""
    if len(values) == 1:
        return values[0]
    at = p * (len(values) + 1) - 1
    low = min(max(math.floor(at), 0), len(values) - 2)
    return values[low] + (at - low) * (values[low + 1] - values[low])


@pytest.mark.parametrize("m", [1, 5, 7, 30])
@pytest.mark.parametrize("make", [WassersteinPool, FixedWassersteinPool])
def test_pswe_moves_each_point_of_the_reference_to_its_quantile(m, make):
    pool = make(m, DIM).double()
    if make is WassersteinPool:
        with torch.no_grad():
            pool.reference.copy_(torch.randn(DIM, m, generator=torch.Generator().manual_seed(0)))  # in any order
            pool.slices += torch.rand(DIM, DIM, generator=torch.Generator().manual_seed(0))
    for X in sets():
        expected = []
        for f in range(DIM):
            theta = pool.slices[f] / pool.slices[f].norm() if make is WassersteinPool else torch.eye(DIM).double()[f]
            values, reference = sorted((X @ theta).tolist()), pool.reference[f].tolist()
            moved = [quantile(values, (sorted(reference).index(r) + 1) / (m + 1)) for r in reference]
            expected.append(sum(w * (r - q) for w, r, q in zip(pool.scales[f].tolist(), reference, moved, strict=True)))
        torch.testing.assert_close(pool(X[None])[0, 0], torch.tensor(expected, dtype=torch.float64))
