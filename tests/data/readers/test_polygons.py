"""Polygons as triangles: convex ones become fans, others are covered exactly."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import cut_fans, cut_polygons

ARROW = [[2, -1], [0.5, 0], [2, 1], [0, 0]]
ARROW_AREA = 0.5
U = [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]]
COMB = [[9, 2], [0, 2], *([x, x % 2] for x in range(10))]
OUTLINES = {
    "arrow": (ARROW, ARROW_AREA),
    "U": (U, 7),
    "U with a corner on an edge": ([*U, [0, 1]], 7),
    "comb": (COMB, 13.5),
}
PLY = (
    "ply\nformat ascii 1.0\nelement vertex 4\nproperty double x\nproperty double y\nproperty double z\n"
    "element face {}\nproperty list uchar int vertex_indices\nend_header\n{}"
)
ROWS = "".join(f"{x} {y} 0\n" for x, y in ARROW)
FACES = "4 0 1 2 3\n4 3 2 1 0\n"
FILES = {
    "arrow.off": f"OFF 4 2 0\n{ROWS}{FACES}",
    "usual.obj": "".join(f"v {row}\n" for row in ROWS.splitlines()) + "f 1 2 3 4\nf -1 -2 -3 -4\n",
    "arrow.ply": PLY.format(2, ROWS + FACES),
    "mixed.ply": PLY.format(3, ROWS + FACES + "3 0 0 1\n"),
}


def crosses(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = vertices[faces].transpose(1, 0, 2)
    found: np.ndarray = np.cross(b - a, c - a)
    return found


def tilted(outline: list) -> np.ndarray:
    """An outline in a plane that is not parallel to the axes, far from the origin."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    return 1e3 * np.column_stack([outline, np.zeros(len(outline))]) @ turn + [1e4, -2e4, 5e3]


@pytest.mark.parametrize("name", FILES)
def test_every_reader_keeps_to_the_face(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    mesh = read_mesh(tmp_path / name)
    assert np.linalg.norm(crosses(mesh.vertices, mesh.faces), axis=1).sum() / 2 == pytest.approx(2 * ARROW_AREA)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("cut", [cut_fans, cut_polygons])
@pytest.mark.parametrize(("outline", "area"), OUTLINES.values(), ids=OUTLINES)
def test_a_polygon_is_covered_from_each_of_its_corners(outline: list, area: float, cut, backwards: bool) -> None:
    vertices, count = tilted(outline), len(outline)
    for first in range(count):
        corners = np.roll(np.arange(count)[:: -1 if backwards else 1], first)
        faces = cut(vertices, corners, np.array([count]))
        assert faces.shape == (count - 2, 3)
        found = crosses(vertices, faces)
        assert np.linalg.norm(found, axis=1).sum() / 2 == pytest.approx(area * 1e6)
        assert np.linalg.norm(found.sum(axis=0)) / 2 == pytest.approx(area * 1e6)  # all turn one way


def test_triangulation_keeps_the_order_of_the_polygons() -> None:
    vertices = np.concatenate([tilted(ARROW), tilted([[0, 0], [1, 0], [1, 1], [0, 1], [-1, 0.5]])])
    corners = np.array([4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8])
    faces = cut_polygons(vertices, corners, np.array([3, 4, 5, 4]))
    np.testing.assert_array_equal(
        faces[[0, 3, 4, 5, 6, 7]], [*[[4, 5, 6], [4, 5, 6], [4, 6, 7], [4, 7, 8]], [5, 6, 7], [7, 8, 5]]
    )
    assert {tuple(sorted(face)) for face in faces[1:3].tolist()} == {(0, 1, 3), (1, 2, 3)}


def test_rounding_leaves_a_convex_polygon_a_fan() -> None:
    edge = np.linspace(0, 1, 7)[1:-1, None]
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    outline = np.concatenate(
        [np.concatenate([[a], a + edge * (b - a)]) for a, b in zip(square, np.roll(square, -1, 0), strict=True)]
    )
    vertices = np.round(tilted(outline.tolist()), 3)  # six digits of its size
    count = len(vertices)
    expected = [[0, i, i + 1] for i in range(1, count - 1)]
    np.testing.assert_array_equal(cut_fans(vertices, np.arange(count), np.array([count])), expected)


@pytest.mark.parametrize(
    "outline",
    [
        [[0, 0], [1, 1], [1, 0], [0, 1]],
        [[0, 0], [2, 0], [0, 1], [2, 3]],
        [[0, 0], [1, 0], [2, 0], [1, 0]],
        [[1, 1]] * 4,
    ],
    ids=["crossing", "crossing unevenly", "on a line", "at a point"],
)
def test_what_cannot_be_cut_into_ears_stays_a_fan(outline: list) -> None:
    faces = cut_fans(tilted(outline), np.arange(4), np.array([4]))
    np.testing.assert_array_equal(faces, [[0, 1, 2], [0, 2, 3]])
