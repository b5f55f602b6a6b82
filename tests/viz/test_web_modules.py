"""The JavaScript modules in node: the camera equals Python's; maps are chosen and arranged as requested."""

import numpy as np
import pytest

from pointset.viz import Camera


def test_the_camera_is_that_of_python(in_node):
    points = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5, 3))
    camera = Camera(azimuth=33, elevation=-12, distance=3)
    given = {"home": {"azimuth": 33, "elevation": -12, "distance": 3}, "points": points.tolist()}
    found = np.array(in_node("camera", "given.points.map(new Camera(given.home).projection())", given))
    local = points @ camera.axes().T
    nearness = 3 / (3 - local[:, 2])
    np.testing.assert_allclose(found, np.column_stack([local[:, :2] * nearness[:, None], local[:, 2]]), atol=1e-9)


@pytest.mark.parametrize(("rows", "columns", "inner"), [(16, 8, 32), (5, 9, 800), (37, 41, 1), (1, 1, 3), (3, 130, 7)])
def test_products_of_matrices(in_node, rows, columns, inner):
    """Also for views of larger matrices, with a view as the result."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(rows, inner + 2)), rng.normal(size=(columns, inner + 5))
    bias, C = rng.normal(size=columns), np.ones((rows, columns + 3))
    given = {
        "A": {"rows": rows, "columns": inner, "data": A.ravel().tolist(), "start": 2, "stride": inner + 2},
        "B": {"rows": columns, "columns": inner, "data": B.ravel().tolist(), "start": 1, "stride": inner + 5},
        "C": {"data": C.ravel().tolist(), "start": 3, "stride": columns + 3},
        "bias": bias.tolist(),
    }
    written = in_node("tensors", "product(given.A, given.B, given.bias, given.C).data", given)
    C[:, 3:] = A[:, 2:] @ B[:, 1 : 1 + inner].T + bias
    np.testing.assert_allclose(written, C.ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("width", "count", "columns"), [(1240, 4, 4), (360, 4, 2), (360, 64, 3), (1240, 64, 8), (40, 9, 1)]
)
def test_panels_fit_the_width_and_do_not_overlap(in_node, width, count, columns):
    groups = [{"head": None, "indices": list(range(count))}]
    found = in_node("controls", f"arranged(given, {width}, 1.2)", groups)
    assert found["columns"] == columns
    boxes = np.array([[p["left"], p["top"], p["left"] + p["width"], p["top"] + p["height"]] for p in found["panels"]])
    assert boxes[:, 2].max() <= width
    assert boxes[:, 3].max() <= found["height"]
    for i, box in enumerate(boxes):
        rest = boxes[i + 1 :]
        assert ((rest[:, :2] >= box[2:]) | (rest[:, 2:] <= box[:2])).any(axis=1).all()
