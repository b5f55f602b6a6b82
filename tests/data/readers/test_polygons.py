"""Polygons are cut into triangles that cover them, and are the same from each corner."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointset.data.readers.meshes import cut_polygons, mesh_of_polygons

ARROW = [[2, -1], [0.5, 0], [2, 1], [0, 0]]
U = [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]]
COMB = [[9, 2], [0, 2], *([x, x % 2] for x in range(10))]
SQUARE, HOLE = [[0, 0], [4, 0], [4, 4], [0, 4]], [[1, 1], [1, 3], [3, 3], [3, 1]]
OUTLINES = {
    "arrow": (ARROW, 0.5),
    "U": (U, 7),
    "U with a corner on an edge": ([*U, [0, 1]], 7),
    "comb": (COMB, 13.5),
    "square with a hole, joined by an edge": ([*SQUARE, SQUARE[0], *HOLE, HOLE[0]], 12),
}


def crosses(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return np.cross(b - a, c - a)


def tilted(outline: list) -> np.ndarray:
    """An outline in a plane that is not parallel to the axes, far from the origin."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    return 1e3 * np.column_stack([outline, np.zeros(len(outline))]) @ turn + [1e4, -2e4, 5e3]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("outline", "area"), OUTLINES.values(), ids=OUTLINES)
def test_a_polygon_is_covered_from_each_of_its_corners(outline, area, backwards):
    vertices, count = tilted(outline), len(outline)
    for first in range(count):
        corners = np.roll(np.arange(count)[:: -1 if backwards else 1], first)
        faces = cut_polygons(vertices, corners, np.array([count]))[0]
        assert len(faces) <= count - 2
        found = crosses(vertices, faces)
        assert np.linalg.norm(found, axis=1).sum() / 2 == pytest.approx(area * 1e6)
        assert np.linalg.norm(found.sum(axis=0)) / 2 == pytest.approx(area * 1e6)  # all turn one way


def test_triangulation_keeps_the_order_of_the_polygons():
    vertices = np.concatenate([tilted(ARROW), tilted([[0, 0], [1, 0], [1, 1], [0, 1], [-1, 0.5]])])
    corners = np.array([4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8])
    faces = mesh_of_polygons(vertices, corners, np.array([3, 4, 5, 4]), "a.obj").faces
    assert faces[[0, 3, 4, 5, 6, 7]].tolist() == [[4, 5, 6], [4, 5, 6], [4, 6, 7], [4, 7, 8], [5, 6, 7], [5, 7, 8]]
    assert {tuple(sorted(face)) for face in faces[1:3].tolist()} == {(0, 1, 3), (1, 2, 3)}


def test_rounding_leaves_a_convex_polygon_a_fan():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    sides = zip(square, np.roll(square, -1, 0), strict=True)
    outline = np.concatenate([np.linspace(a, b, 6, endpoint=False) for a, b in sides])
    vertices = np.round(tilted(outline.tolist()), 3)  # six digits of its size
    expected = [[0, i, i + 1] for i in range(1, len(vertices) - 1)]
    np.testing.assert_array_equal(cut_polygons(vertices, np.arange(24), np.array([24]))[0], expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 12), st.sampled_from(["corners", "straight", "repeated", "folding"]))
def test_triangles_use_every_corner_and_have_the_area_of_the_polygon(seed, count, kind):
    rng = np.random.default_rng(seed)
    angles = (np.arange(count) + 0.9 * rng.random(count)) * 2 * np.pi / count
    angles = rng.permutation(angles) if kind == "folding" else angles
    outline = rng.uniform(0.1, 1, (count, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    if kind in ("straight", "repeated"):
        for place in rng.integers(1, count, 3):
            share = rng.choice([0.25, 0.5]) if kind == "straight" else 0
            outline = np.insert(outline, place, outline[place - 1] * (1 - share) + outline[place] * share, axis=0)
    corners = np.roll(np.arange(len(outline)), rng.integers(count))[:: rng.choice([1, -1])]
    vertices = tilted(outline.tolist())
    if kind == "folding":  # up to its size out of the plane: no triangulation has a right area
        vertices += rng.normal(size=vertices.shape) * 10 ** rng.uniform(-1, 3)
    faces = cut_polygons(vertices, corners, np.array([len(corners)]))[0]
    if kind == "folding" and not len(faces):  # by chance flat, and crossing itself
        assert np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)[2] < 0.01
        return
    if kind != "folding":
        area = np.linalg.norm(np.cross(vertices[corners], vertices[np.roll(corners, -1)]).sum(axis=0))
        assert np.linalg.norm(crosses(vertices, faces), axis=1).sum() == pytest.approx(area, rel=1e-6)
    used = vertices[np.unique(faces)]
    for place in set(corners.tolist()) - set(faces.ravel().tolist()):
        before, after = (vertices[corners[(corners.tolist().index(place) + step) % len(corners)]] for step in (-1, 1))
        ear = np.linalg.norm(np.cross(before - vertices[place], after - vertices[place]))
        assert ear < 1e-3 or np.abs(used - vertices[place]).max(axis=1).min() < 1e-6


@pytest.mark.parametrize("outline", [[[0, 0], [1, 0], [2, 0], [1, 0]], [[1, 1]] * 4, [[0, 0], [1, 0], [0, 0], [0, 1]]])
def test_a_polygon_without_area_stays_a_fan(outline):
    faces = cut_polygons(tilted(outline), np.arange(4), np.array([4]))[0]
    np.testing.assert_array_equal(faces, [[0, 1, 2], [0, 2, 3]])
