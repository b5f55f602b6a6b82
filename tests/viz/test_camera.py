"""The camera: equal axes, nearer things are larger, and the up axis points up."""

import numpy as np
import pytest

from pointset.viz import Camera

BALL = np.random.default_rng(0).normal(size=(4000, 3))
BALL /= np.linalg.norm(BALL, axis=1, keepdims=True)


@pytest.mark.parametrize("azimuth", [-130.0, 0.0, 75.0])
@pytest.mark.parametrize("elevation", [-90.0, 20.0, 90.0])
def test_a_ball_looks_round_from_everywhere(azimuth, elevation):
    places, _ = Camera(azimuth, elevation).project(7 * BALL + 3)
    radii = np.linalg.norm(places, axis=1)
    # The outline of a unit ball seen from distance d has radius d / sqrt(d^2 - 1).
    outline = 4 / np.sqrt(15)
    directions = np.floor(np.arctan2(places[:, 1], places[:, 0]) / (np.pi / 6)).astype(int)
    for direction in range(-6, 6):
        assert radii[directions == direction].max() == pytest.approx(outline, rel=0.02)


def test_the_camera_looks_along_its_azimuth_and_elevation():
    axes = np.vstack([np.eye(3), -np.eye(3)])
    places, nearness = Camera(azimuth=0, elevation=0).project(axes)
    assert nearness[0] == max(nearness) > 1 > nearness[3]  # the camera stands on the x axis
    assert places[1] == pytest.approx([1, 0])  # y to the right
    assert places[2] == pytest.approx([0, 1])  # z to the top
    assert nearness[0] == pytest.approx(4 / 3)
    _, from_above = Camera(azimuth=0, elevation=90).project(axes)
    assert from_above.argmax() == 2


def test_a_cloud_with_y_up_looks_like_its_twin_with_z_up():
    cloud = BALL[:50] * (1, 2, 3)
    y_up = cloud[:, [0, 2, 1]] * (1, 1, -1)
    for seen, twin in zip(Camera(up="y").project(y_up), Camera(up="z").project(cloud), strict=True):
        np.testing.assert_allclose(seen, twin)
    places, nearness = Camera().project(np.array([[3.0, 4.0, 5.0]]))
    assert (places.tolist(), nearness.tolist()) == ([[0.0, 0.0]], [1.0]), "one point is a cloud too"
