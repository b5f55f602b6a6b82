"""Transformations of clouds against their published definitions."""

import math

import numpy as np
import pytest
import torch
from corruption_cases import by_severity, clouds, seeded
from scipy import stats
from scipy.interpolate import RBFInterpolator
from torch import Tensor

from pointset.evaluation.corruptions import SEVERITIES, corrupt_sphere

pytestmark = pytest.mark.usefixtures("single_thread")


def matrices(name: str, severity: int, count: int = 4000) -> Tensor:
    """The matrices M [count, 3, 3] of a linear corruption, p' = p M."""
    return corrupt_sphere(torch.eye(3, dtype=torch.float64).expand(count, 3, 3), name, severity, seeded(severity))


def of_random_sign_within(numbers: Tensor, low: float, high: float) -> bool:
    """True if sizes are uniform on [low, high] and both signs equally frequent."""
    sizes = numbers.abs().numpy()
    even = stats.binomtest(int((numbers > 0).sum()), len(numbers)).pvalue > 0.001
    return even and stats.kstest(sizes, stats.uniform(low, high - low).cdf).pvalue > 0.001


@pytest.mark.parametrize(("severity", "degrees"), by_severity(2.5, 5.0, 7.5, 10.0, 15.0))
def test_rotations_turn_about_three_axes_by_published_angles(severity: int, degrees: float) -> None:
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
def test_shear_has_the_published_matrix(severity: int, amount: float) -> None:
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


def test_free_form_distortion_is_the_sum_of_its_definition() -> None:
    points = clouds(3, 40).double()
    amount = 0.3
    mu = (torch.rand(3, 125, 3, generator=seeded(7), dtype=torch.float64) * 2 - 1) * amount
    expected = points.clone()
    for cloud in range(3):
        for row, point in enumerate(points[cloud]):
            u = ((point + 1) / 2).tolist()
            b = [[math.comb(4, i) * t**i * (1 - t) ** (4 - i) for i in range(5)] for t in u]
            for i in range(5):
                for j in range(5):
                    for k in range(5):
                        weight = b[0][i] * b[1][j] * b[2][k]
                        expected[cloud, row] += 2 * weight * mu[cloud, 25 * i + 5 * j + k]
    torch.testing.assert_close(corrupt_sphere(points, "distortion", 3, seeded(7)), expected)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("distortion_rbf", "multiquadric"), ("distortion_rbf_inv", "inverse_multiquadric")],
)
def test_radial_distortion_agrees_with_scipy(name: str, kernel: str) -> None:
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


def test_control_points_move_at_the_published_angles() -> None:
    line = torch.linspace(-1, 1, 5, dtype=torch.float64)
    controls = torch.cartesian_prod(line, line, line).expand(40, -1, -1)
    moves = (corrupt_sphere(controls, "distortion_rbf", 5, seeded()) - controls).flatten(0, 1) / 0.125
    # z is the cosine of an angle uniform on [-pi, pi]: its arc cosine is uniform on [0, pi], so poles are crowded.
    polar = torch.arccos(moves[:, 2].clamp(-1, 1)).numpy()
    assert stats.kstest(polar, stats.uniform(0, math.pi).cdf).pvalue > 0.001
    around = torch.atan2(moves[:, 1], moves[:, 0]).numpy()
    assert stats.kstest(around, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 0.001
