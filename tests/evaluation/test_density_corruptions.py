"""Corruptions of density against their published definitions: which points are left, and how many."""

import math

import numpy as np
import pytest
import torch
from corruption_cases import clouds, line, lost_rows, rows_of, seeded

from pointset.evaluation.corruptions import CORRUPTIONS, SEVERITIES, corrupt_sphere
from pointset.evaluation.corruptions.points import portions, rounded

pytestmark = pytest.mark.usefixtures("single_thread")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        # What the released code leaves of 1,024 points: less 30 a patch; less 75 a patch; less the dropped.
        ("density", [949, 874, 799, 724, 649]),
        ("drop_global", [768, 640, 512, 384, 256]),
        ("drop_local", [924, 824, 724, 624, 524]),
    ],
)
def test_as_many_points_are_left_as_published_all_of_them_original(name: str, sizes: list[int]) -> None:
    points = clouds(3)
    for severity, size in zip(SEVERITIES, sizes, strict=True):
        changed = corrupt_sphere(points, name, severity, seeded(severity))
        assert changed.shape == (3, size, 3)
        for rows in rows_of(changed, points):
            assert -1 not in rows
            assert len(set(rows)) == size


def test_other_numbers_of_points_keep_the_proportions() -> None:
    for n in (100, 333, 1000, 5000):
        points = clouds(1, n)
        for severity, patches in zip(SEVERITIES, (2, 3, 5, 7, 10), strict=True):
            left = corrupt_sphere(points, "cutout", severity, seeded()).shape[1]
            assert abs(left - n * (1 - 30 * patches / 1024)) <= 0.5
            left = corrupt_sphere(points, "density", severity, seeded()).shape[1]
            assert abs(left - n * (1 - 75 * severity / 1024)) <= 0.5
    assert portions(10, 30, of=1024, n=1024) == [30] * 10
    assert portions(5, 100, of=1024, n=100) == [10, 10, 9, 10, 10]  # 48.8 together
    assert rounded(1, 2, 5) == 3  # half up


@pytest.mark.parametrize("n", [1024, 300])
def test_cutout_takes_a_random_point_with_its_nearest(n: int) -> None:
    changed = CORRUPTIONS["cutout"].apply(line(200, n), 1, seeded())
    size = rounded(30, 1024, n)
    lost = lost_rows(changed, n)
    assert all(rows == list(range(rows[0], rows[0] + size)) for rows in lost)
    assert min(rows[0] for rows in lost) < 0.1 * n
    assert max(rows[-1] for rows in lost) > 0.9 * n


def test_density_thins_a_patch_out_to_a_quarter() -> None:
    lost = lost_rows(corrupt_sphere(line(200, 1024), "density", 1, seeded()), 1024)
    assert all(len(rows) == 75 for rows in lost)
    spans = [rows[-1] - rows[0] + 1 for rows in lost]
    assert max(spans) <= 100
    assert np.mean(spans) == pytest.approx(74 * 101 / 76 + 1, abs=0.2)  # the mean span of 75 of 100 numbers


def test_density_inc_keeps_patches_whole_and_draws_the_rest_with_replacement() -> None:
    assert CORRUPTIONS["density_inc"].points_needed == 2
    for severity in SEVERITIES:
        changed = corrupt_sphere(line(60, 2048), "density_inc", severity, seeded(severity))
        assert changed.shape == (60, 1024, 3)
        repeats = []
        for rows in changed[..., 0].long().tolist():
            dense, rest = rows[: 100 * severity], rows[100 * severity :]
            assert len(set(dense)) == 100 * severity
            assert set(dense).isdisjoint(rest)
            repeats.append(len(rest) - len(set(rest)))
        drawn, among = 1024 - 100 * severity, 2048 - 100 * severity
        distinct = among * (1 - (1 - 1 / among) ** drawn)
        assert np.mean(repeats) == pytest.approx(drawn - distinct, rel=0.05)
    one = corrupt_sphere(line(60, 2048), "density_inc", 1, seeded())[:, :100, 0].long()
    assert torch.equal(one.sort(dim=1).values, one.amin(1, keepdim=True) + torch.arange(100))


def test_global_dropout_is_uniform_over_subsets() -> None:
    points = torch.arange(8.0)[None, :, None].expand(6000, 8, 3)
    kept = corrupt_sphere(points, "drop_global", 4, seeded())[..., 0].long()  # floor(0.375 * 8) = 3
    assert kept.shape == (6000, 3)
    counts = torch.bincount(kept.flatten(), minlength=8) / 6000
    assert (counts - 3 / 8).abs().max() < 0.03
    assert len({tuple(sorted(row)) for row in kept.tolist()}) == math.comb(8, 3)


def test_local_dropout_makes_one_to_seven_patches() -> None:
    # On a line patches are runs of rows, which may touch: no more runs than patches, and seven now and then.
    lost = lost_rows(corrupt_sphere(line(500, 1024), "drop_local", 1, seeded()), 1024)
    assert all(len(rows) == 100 for rows in lost)
    runs = [1 + int((np.diff(rows) > 1).sum()) for rows in lost]
    counts = np.bincount(runs, minlength=8)
    assert len(counts) == 8
    assert counts[0] == 0
    assert 500 / 7 - 25 < counts[1] < 500 / 7 + 45  # C = 1 for certain, or more patches that touch
    assert counts[7] > 20
