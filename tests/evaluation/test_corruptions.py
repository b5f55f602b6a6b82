"""Corruptions, each against its published definition."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.interpolate import RBFInterpolator
from torch import Generator, Tensor

from pointset.data.catalogue.cards import load_card
from pointset.data.normalize import unit_sphere
from pointset.evaluation.corruptions import (
    CORRUPTIONS,
    MODELNET40_C,
    SEVERITIES,
    corrupt,
    find_corruption,
    list_corruptions,
)


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def corrupt_sphere(points: Tensor, name: str, severity: int, generator: Generator) -> Tensor:
    """Corrupt clouds in the unit sphere, y up."""
    corruption, level = find_corruption(name, severity)
    return corruption.apply(points, level, generator)


def by_severity(*published: float) -> list[tuple[int, float]]:
    """Severities 1 to 5 with the published values."""
    return list(zip(SEVERITIES, published, strict=True))


def clouds(sets: int = 5, points: int = 1024, seed: int = 99) -> Tensor:
    """Asymmetric solid clouds in the unit sphere, without equal points."""
    generator = seeded(seed)
    axes = torch.tensor([1.0, 0.6, 0.3])
    return unit_sphere(torch.randn(sets, points, 3, generator=generator) * axes + 0.3)


def line(sets: int, points: int) -> Tensor:
    """Clouds with point (i, 0, 0) in row i: nearest points are neighbouring rows, and coordinates identify the row."""
    rows = torch.arange(points, dtype=torch.float32).expand(sets, -1)
    return torch.stack([rows, torch.zeros_like(rows), torch.zeros_like(rows)], dim=2)


def lost_rows(changed: Tensor, n: int) -> list[list[int]]:
    """The rows of `line` that are missing in each cloud, in order."""
    return [sorted(set(range(n)) - set(rows)) for rows in changed[..., 0].long().tolist()]


EVERY = sorted(CORRUPTIONS)


def test_the_benchmarks_corruptions_are_all_there():
    without = {"occlusion", "lidar", "original"}
    assert set(MODELNET40_C) == set(load_card("modelnet40-c").variants) - without
    assert set(list_corruptions()) == {*MODELNET40_C, "drop_global", "drop_local"}
    assert all(len(CORRUPTIONS[name].levels) == 5 and CORRUPTIONS[name].name == name for name in EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_the_generator_decides_everything_and_the_input_is_left_alone(name):
    points = clouds(3, 50)
    before, state = points.clone(), torch.get_rng_state()
    first, again, other = (corrupt_sphere(points, name, 3, seeded(seed)) for seed in (4, 4, 5))
    assert torch.equal(first, again)
    assert first.shape == other.shape
    assert not torch.equal(first, other)
    assert torch.equal(points, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert first.dtype == points.dtype
    assert corrupt_sphere(points.double(), name, 3, seeded()).dtype == torch.float64
    twins = corrupt_sphere(points[:1].expand(4, -1, -1), name, 5, seeded())
    assert (twins != twins[:1]).any(), "each cloud of a batch is corrupted differently"


@pytest.mark.parametrize("name", EVERY)
def test_clouds_of_few_points_on_one_spot_or_none_at_all_are_fine(name):
    for n, severity in itertools.product([1, 2, 3, 7, 16], SEVERITIES):
        changed = corrupt_sphere(clouds(2, 100)[:, :n], name, severity, seeded())
        assert changed.shape[0] == 2
        assert 1 <= changed.shape[1] <= 2 * n + 1
        assert changed.isfinite().all()
        assert corrupt_sphere(torch.zeros(2, n, 3), name, severity, seeded()).isfinite().all()
    assert corrupt_sphere(torch.zeros(0, 7, 3), name, 2, seeded()).shape[0] == 0


@pytest.mark.parametrize("name", EVERY)
def test_clouds_of_any_place_and_size_are_corrupted_in_the_frame_of_the_benchmarks(name):
    unit = clouds(2, 64).double()
    unit = unit - unit.mean(dim=1, keepdim=True)
    unit = unit / unit.norm(dim=2).amax(dim=1)[:, None, None]
    expected = corrupt_sphere(unit, name, 4, seeded(7))
    found = corrupt((10 * unit + 3).numpy().astype(">f8"), name, 4, 7, up="y")  # as plyfile reads
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose((found - 3) / 10, expected.numpy(), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        # What the released code leaves of 1,024 points: less 30 a patch; less 75 a patch; less the dropped.
        ("density", [949, 874, 799, 724, 649]),
        ("drop_global", [768, 640, 512, 384, 256]),
        ("drop_local", [924, 824, 724, 624, 524]),
    ],
)
def test_as_many_points_are_left_as_published_all_of_them_original(name, sizes):
    points = clouds(3)
    for severity, size in zip(SEVERITIES, sizes, strict=True):
        changed = corrupt_sphere(points, name, severity, seeded(severity))
        assert changed.shape == (3, size, 3)
        for after, before in zip(changed.tolist(), points.tolist(), strict=True):
            left = {tuple(point) for point in after}
            assert len(left) == size
            assert left <= {tuple(point) for point in before}


@pytest.mark.parametrize("n", [1024, 300])
def test_cutout_takes_a_random_point_with_its_nearest(n):
    changed = CORRUPTIONS["cutout"].apply(line(200, n), 1, seeded())
    size = 30 * n // 1024 + (n == 300)  # 8.8 of 300 points are 9
    lost = lost_rows(changed, n)
    assert all(rows == list(range(rows[0], rows[0] + size)) for rows in lost)
    assert min(rows[0] for rows in lost) < 0.1 * n
    assert max(rows[-1] for rows in lost) > 0.9 * n


@pytest.mark.parametrize(("n", "taken"), [(1024, 75), (300, 22)])  # 21.97 of 300
def test_density_thins_a_patch_out_to_a_quarter(n, taken):
    lost = lost_rows(corrupt_sphere(line(200, n), "density", 1, seeded()), n)
    assert {len(rows) for rows in lost} == {taken}
    spans = [rows[-1] - rows[0] + 1 for rows in lost]
    patch = taken * 4 // 3
    assert max(spans) <= patch + 1
    assert np.mean(spans) == pytest.approx((taken - 1) * (patch + 1) / (taken + 1) + 1, abs=0.2 * 1024 / n)


def test_density_inc_keeps_patches_whole_and_draws_the_rest_with_replacement():
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


def test_global_dropout_is_uniform_over_subsets():
    points = torch.arange(8.0)[None, :, None].expand(6000, 8, 3)
    kept = corrupt_sphere(points, "drop_global", 4, seeded())[..., 0].long()  # floor(0.375 * 8) = 3
    assert kept.shape == (6000, 3)
    counts = torch.bincount(kept.flatten(), minlength=8) / 6000
    assert (counts - 3 / 8).abs().max() < 0.03
    assert len({tuple(sorted(row)) for row in kept.tolist()}) == math.comb(8, 3)


def test_local_dropout_makes_one_to_seven_patches():
    # On a line patches are runs of rows, which may touch: no more runs than patches, and seven now and then.
    lost = lost_rows(corrupt_sphere(line(500, 1024), "drop_local", 1, seeded()), 1024)
    assert all(len(rows) == 100 for rows in lost)
    runs = [1 + int((np.diff(rows) > 1).sum()) for rows in lost]
    counts = np.bincount(runs, minlength=8)
    assert len(counts) == 8
    assert counts[0] == 0
    assert 500 / 7 - 25 < counts[1] < 500 / 7 + 45  # C = 1 for certain, or more patches that touch
    assert counts[7] > 20


UNIFORM = [("uniform", level, stats.uniform(-it, 2 * it)) for level, it in by_severity(0.01, 0.02, 0.03, 0.04, 0.05)]
GAUSSIAN = [("gaussian", level, stats.norm(0, it)) for level, it in by_severity(0.01, 0.015, 0.02, 0.025, 0.03)]


@pytest.mark.parametrize(("name", "severity", "published"), UNIFORM + GAUSSIAN)
def test_noise_has_the_published_distribution_and_the_normal_one_is_clipped_to_the_cube(name, severity, published):
    points = (0.5 * clouds(20)).double()  # far from the walls of the cube
    noise = (corrupt_sphere(points, name, severity, seeded()) - points).flatten().numpy()
    assert stats.kstest(noise, published.cdf).pvalue > 0.001
    wall = torch.ones(2, 500, 3)
    assert (corrupt_sphere(wall, name, severity, seeded()).max() == 1.0) == (name == "gaussian")
    assert (corrupt_sphere(-wall, name, severity, seeded()).min() == -1.0) == (name == "gaussian")


@pytest.mark.parametrize(("severity", "moved"), by_severity(34, 40, 51, 68, 102))
def test_impulses_move_some_points_by_a_tenth_along_each_axis(severity, moved):
    points = clouds(30).double()
    steps = corrupt_sphere(points, "impulse", severity, seeded()) - points
    where = (steps != 0).any(2)
    assert (where.sum(1) == moved).all()  # floor(1024 / 30), ...
    torch.testing.assert_close(steps[where].abs(), torch.full((30 * moved, 3), 0.1, dtype=torch.float64))
    eight = torch.bincount(((steps[where] > 0).long() * torch.tensor([1, 2, 4])).sum(1), minlength=8)
    assert stats.chisquare(eight.numpy()).pvalue > 0.001  # every corner of the cube alike
    assert not torch.equal(where[0], where[1])


@pytest.mark.parametrize(("severity", "added"), by_severity(204, 256, 341, 512, 1024))
def test_upsampling_adds_noisy_copies_of_different_points(severity, added):
    points = torch.zeros(4, 1024, 3, dtype=torch.float64)
    points[..., 1] = torch.arange(1024)  # a point apart from the next by more than the noise
    changed = corrupt_sphere(points, "upsampling", severity, seeded())
    assert changed.shape == (4, 1024 + added, 3)
    assert torch.equal(changed[:, :1024], points)
    of = changed[:, 1024:, 1].round().long()
    assert all(len(set(rows)) == added for rows in of.tolist())
    noise = changed[:, 1024:] - points.gather(1, of.unsqueeze(2).expand(-1, -1, 3))
    assert stats.kstest(noise.flatten().numpy(), stats.uniform(-0.05, 0.1).cdf).pvalue > 0.001


@pytest.mark.parametrize(("severity", "added"), by_severity(22, 25, 29, 34, 51))
def test_background_adds_points_uniform_in_the_cube(severity, added):
    points = clouds(30).double()
    changed = corrupt_sphere(points, "background", severity, seeded())
    assert changed.shape == (30, 1024 + added, 3)
    assert torch.equal(changed[:, :1024], points)
    for axis in range(3):
        assert stats.kstest(changed[:, 1024:, axis].flatten().numpy(), stats.uniform(-1, 2).cdf).pvalue > 0.001


def matrices(name: str, severity: int, count: int = 4000) -> Tensor:
    """The matrices M [count, 3, 3] of a linear corruption, p' = p M."""
    return corrupt_sphere(torch.eye(3, dtype=torch.float64).expand(count, 3, 3), name, severity, seeded(severity))


def of_random_sign_within(numbers: Tensor, low: float, high: float) -> bool:
    """True if sizes are uniform on [low, high] and both signs equally frequent."""
    sizes = numbers.abs().numpy()
    even = stats.binomtest(int((numbers > 0).sum()), len(numbers)).pvalue > 0.001
    return even and stats.kstest(sizes, stats.uniform(low, high - low).cdf).pvalue > 0.001


@pytest.mark.parametrize(("severity", "degrees"), by_severity(2.5, 5.0, 7.5, 10.0, 15.0))
def test_rotations_turn_about_three_axes_by_published_angles(severity, degrees):
    M = matrices("rotation", severity)
    eye = torch.eye(3, dtype=M.dtype).expand_as(M)
    torch.testing.assert_close(M @ M.transpose(1, 2), eye)
    torch.testing.assert_close(torch.linalg.det(M), torch.ones(len(M), dtype=M.dtype))
    # M = Rx(t) Ry(g) Rz(b) as intrinsic Euler angles, found by an independent library.
    from scipy.spatial.transform import Rotation

    angles = torch.from_numpy(Rotation.from_matrix(M.numpy()).as_euler("XYZ", degrees=True))
    for axis in range(3):
        assert of_random_sign_within(angles[:, axis], degrees - 2.5, degrees + 2.5)
    assert np.abs(np.corrcoef(angles.T.numpy()) - np.eye(3)).max() < 0.08


@pytest.mark.parametrize(("severity", "amount"), by_severity(0.05, 0.1, 0.15, 0.2, 0.25))
def test_shear_has_the_published_matrix(severity, amount):
    M = matrices("shear", severity)
    fixed = torch.tensor([[1.0, 0.0, torch.nan], [torch.nan, 1.0, torch.nan], [torch.nan, 0.0, 1.0]])
    for row in range(3):
        for column in range(3):
            if fixed[row, column].isnan():
                assert of_random_sign_within(M[:, row, column], amount - 0.05, amount + 0.05)
            else:
                assert (M[:, row, column] == fixed[row, column]).all()
    free = M.flatten(1)[:, fixed.flatten().isnan()]
    assert np.abs(np.corrcoef(free.T.numpy()) - np.eye(4)).max() < 0.08
    points = clouds(3, 20)
    assert torch.equal(corrupt_sphere(points, "shear", severity, seeded())[..., 1], points[..., 1])  # heights stay


@pytest.mark.parametrize(("severity", "amount"), by_severity(0.1, 0.2, 0.3, 0.4, 0.5))
def test_free_form_distortion_is_the_sum_of_its_definition(severity, amount):
    points = clouds(3, 10).double()
    mu = (torch.rand(3, 125, 3, generator=seeded(7), dtype=torch.float64) * 2 - 1) * amount
    u = (points + 1) / 2
    b = torch.stack([math.comb(4, i) * u**i * (1 - u) ** (4 - i) for i in range(5)])
    weights = torch.einsum("iBn,jBn,kBn->Bnijk", *b.unbind(dim=3)).flatten(2)
    expected = points + 2 * weights @ mu
    torch.testing.assert_close(corrupt_sphere(points, "distortion", severity, seeded(7)), expected)


@pytest.mark.parametrize("inverse", [False, True])
def test_radial_distortion_agrees_with_scipy(inverse):
    name, kernel = f"distortion_rbf{'_inv' * inverse}", f"{'inverse_' * inverse}multiquadric"
    points = clouds(2, 50).double()
    line = np.linspace(-1, 1, 5)
    controls = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    # What the control points do is seen by corrupting them; everything else must follow from it.
    both = torch.cat([torch.from_numpy(controls).expand(2, -1, -1), points], dim=1)
    for severity, distance in zip(SEVERITIES, (0.025, 0.05, 0.075, 0.1, 0.125), strict=True):
        changed = corrupt_sphere(both, name, severity, seeded(severity))
        moves = (changed - both)[:, :125].numpy()
        np.testing.assert_allclose(np.linalg.norm(moves, axis=2), distance, rtol=1e-8)
        for cloud in range(2):
            # scipy's multiquadric is -sqrt(1 + (epsilon r)^2): the same up to a factor that its weights take.
            smooth = RBFInterpolator(controls, moves[cloud], kernel=kernel, epsilon=1 / 0.5, degree=1)
            np.testing.assert_allclose((changed - both)[cloud, 125:].numpy(), smooth(points[cloud].numpy()), atol=1e-9)


def test_control_points_move_at_the_published_angles():
    line = torch.linspace(-1, 1, 5, dtype=torch.float64)
    controls = torch.cartesian_prod(line, line, line).expand(40, -1, -1)
    moves = (corrupt_sphere(controls, "distortion_rbf", 5, seeded()) - controls).flatten(0, 1) / 0.125
    # z is the cosine of an angle uniform on [-pi, pi]: its arc cosine is uniform on [0, pi], so poles are crowded.
    polar = torch.arccos(moves[:, 2].clamp(-1, 1)).numpy()
    assert stats.kstest(polar, stats.uniform(0, math.pi).cdf).pvalue > 0.001
    around = torch.atan2(moves[:, 1], moves[:, 0]).numpy()
    assert stats.kstest(around, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 0.001
