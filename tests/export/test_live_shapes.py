"""The live page reads and samples shapes, and normalises points, as Python does."""

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pointset.data import read_cloud, read_mesh
from pointset.data.normalize import ABOUT, NORMALIZATIONS, normalize_points
from pointset.export.live.page import WEB

OFF = "OFF\n5 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n4 0 1 2 3\n3 0 1 4\n"
OBJ = "# box\nmtllib a\nv 0 0 0\nv 1 0 0 # second\nv 1 1 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1 4/1\nf -1//3 -2//2 -3//1\n"
MESHES = {
    "usual.off": OFF,
    "glued.off": OFF.replace("OFF\n", "OFF"),
    "spelled.off": "\ufeff# made by hand\r\n\r\nCOFF # a colour each\r\n3 1\r\n"
    + "".join(f"{x} {x * x} .5 1 1 1 1\r\n" for x in range(3))
    + "3 2 1 0 0.5 0.5 0.5",
    "usual.obj": OBJ,
}
CLOUDS = {
    "blanks.xyz": "# a scan\n\n0 0 1\n1 2 3 // end\n-1e-3 .5 +2\n",
    "normals.txt": "0.5,0,1,0,0,1\n1,2,3,0,0,1\n",
    "names.csv": "x;y;z\n0; 0; 1\n1; 2; 3\n",
}
FAULTY = {
    "words.off": (OFF.replace("1 1 0\n0 1", "1 x 0\n0 1"), "line 5: expected vertex 2 of 5, found 1 x 0"),
    "short.off": (OFF.replace("3 0 1 4\n", ""), "line 8: expected face 1 of 2, found the end"),
    "surplus.off": (OFF + "3 0 1 2\n", "line 10"),
    "corner.off": (OFF.replace("3 0 1 4", "3 0 1 5"), "5 vertices"),
    "other.off": ("PLY\n", "line 1: expected the word OFF"),
    "empty.off": ("", "expected the word OFF"),
    "infinite.off": (OFF.replace("0 0 1\n", "0 0 inf\n"), "line 7"),
    "corner.obj": (OBJ.replace("4/1", "5/1"), "4 vertices"),
    "word.obj": (OBJ.replace("4/1", "x/1"), "4 vertices"),
    "short.obj": (OBJ.replace("v 1 1 0", "v 1 1"), "line 5: expected 3 coordinates"),
    "line.obj": ("v 0 0 0\nv 1 0 0\nf 1 2\n", "found no triangles"),
    "two.xyz": ("0 0 1\n1 2\n", "line 2"),
    "comma.xyz": ("1,5 2,5 3,5\n", "line 1"),
    "missing.xyz": ("1,2,3\n1,,2\n", "line 2"),
    "shape.step": ("", ".off, .obj"),
    "constructor": ("", ".off, .obj"),
}
READ = """given.map(({ name, bytes }) => {
  try {
    const { vertices, triangles } = readShape(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)), name);
    return { vertices: [...vertices], triangles: triangles && [...triangles] };
  } catch (error) { return { error: error.message, kind: error.constructor.name }; }
})"""


@pytest.fixture(scope="module")
def read(in_node: Callable[..., Any]) -> dict[str, Any]:
    """The results of the JavaScript readers for each file."""
    contents = (
        MESHES
        | CLOUDS
        | {"vertices.obj": "v 0 0 1\nv 1 2 3\n"}
        | {name: content for name, (content, _) in FAULTY.items()}
    )
    coded = {name: base64.b64encode(content.encode()).decode() for name, content in contents.items()}
    given = [{"name": name, "bytes": code} for name, code in coded.items()]
    return dict(zip(contents, in_node(WEB / "shapes.mjs", READ, given), strict=True))


def as_set(vertices: Any, triangles: Any) -> set[tuple[Any, ...]]:
    return {tuple(sorted(map(tuple, np.reshape(vertices, (-1, 3))[corners].tolist()))) for corners in triangles}


@pytest.mark.parametrize("name", MESHES)
def test_meshes_are_those_that_python_reads(read, tmp_path, name):
    (tmp_path / name).write_bytes(MESHES[name].encode())
    mesh, other = read_mesh(tmp_path / name), read[name]
    assert as_set(other["vertices"], np.reshape(other["triangles"], (-1, 3))) == as_set(mesh.vertices, mesh.faces)


@pytest.mark.parametrize("name", CLOUDS)
def test_clouds_are_those_that_python_reads(read, tmp_path, name):
    (tmp_path / name).write_text(CLOUDS[name])
    np.testing.assert_allclose(np.reshape(read[name]["vertices"], (-1, 3)), read_cloud(tmp_path / name).points)
    assert read[name]["triangles"] is None


def test_an_obj_file_of_vertices_alone_is_a_cloud(read):
    assert read["vertices.obj"] == {"vertices": [0, 0, 1, 1, 2, 3], "triangles": None}


@pytest.mark.parametrize("name", FAULTY)
def test_wrong_files_are_refused_in_one_sentence(read, name):
    assert read[name]["kind"] == "ReadError"
    assert read[name]["error"].startswith(name)
    assert FAULTY[name][1] in read[name]["error"]


def test_points_are_drawn_by_area_and_by_seed(in_node):
    vertices, triangles = [0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 5, 1, 0, 5, 0, 2, 5], [0, 1, 2, 3, 4, 5, 0, 0, 1]
    calls = "[[4000, 1], [4000, 1], [100, 1], [100, 2]].map(([n, seed]) => [...samplePoints(given, n, seed)])"
    many, again, few, other = in_node(WEB / "shapes.mjs", calls, {"vertices": vertices, "triangles": triangles})
    assert many == again
    assert many[:300] == few
    assert few != other
    points = np.reshape(many, (-1, 3))
    assert np.mean(points[:, 2] == 0) == pytest.approx(0.75, abs=0.03)  # areas 3 and 1
    low = points[points[:, 2] == 0]
    np.testing.assert_allclose(low.mean(axis=0), [1, 2 / 3, 0], atol=0.05)
    assert (low[:, 0] / 3 + low[:, 1] / 2).max() <= 1


def test_some_of_a_cloud_are_chosen_once_each(in_node):
    cloud = {"vertices": list(range(30)), "triangles": None}
    program = "[[...samplePoints({ ...given, vertices: new Float64Array(given.vertices) }, 6, 3)]]"
    points = np.reshape(in_node(WEB / "shapes.mjs", program, cloud)[0], (-1, 3))
    assert len({tuple(point) for point in points}) == 6
    assert (np.diff(points, axis=1) == 1).all()


def test_clouds_are_normalised_as_in_python(in_node):
    clouds = np.random.default_rng(0).normal([1e3, -5, 2], [1, 4, 2], size=(2, 40, 3))
    clouds[1] = clouds[1, :1]  # without extent
    names = sorted(NORMALIZATIONS.keys() - {*ABOUT})
    program = f"{names}.map((how) => given.map((cloud) => [...normalizePoints(cloud, how)]))"
    normalised = in_node(WEB / "questions.mjs", program, clouds.reshape(2, -1).tolist())
    for how, numbers in zip(names, normalised, strict=True):
        expected = normalize_points(torch.from_numpy(clouds), how).numpy()
        np.testing.assert_allclose(np.reshape(numbers, clouds.shape), expected, rtol=1e-6, atol=1e-6, err_msg=how)
