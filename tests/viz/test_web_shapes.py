"""Shapes in JavaScript: files are read or refused, sampled and normalised as in Python."""

import base64
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pointset.data import read_cloud, read_mesh
from pointset.data.normalize import ABOUT, NORMALIZATIONS, normalize_points

OFF = "OFF\n5 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n4 0 1 2 3\n3 0 1 4\n"
OBJ = (
    "# a box\nmtllib a.mtl\nv 0 0 0\nv 1 0 0 # second\nv 1 1 0\nv 0 1 0\nvt 0 0\n"
    "f 1/1 2/1 3/1 4/1\nf -1//3 -2//2 -3//1\n"
)
PLY = (
    "ply\nformat ascii 1.0\ncomment by hand\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    "property uchar red\nelement face 2\nproperty list uchar int vertex_indices\nend_header\n"
    "0 0 0 9\n1 0 0 9\n1 1 0 9\n0 1 0 9\n4 0 1 2 3\n3 0 1 2\n"
)
CORNERS = "vertex 0 0 0\nvertex 1 0 0\nvertex 0 1 5e-1\n"
STL = f"solid a name\nfacet normal 0 0 1\nouter loop\n{CORNERS}endloop\nendfacet\nendsolid a name\n"


def binary_ply(order: str) -> bytes:
    name = {"<": "little", ">": "big"}[order]
    head = PLY.split("end_header\n")[0].replace("ascii", f"binary_{name}_endian") + "end_header\n"
    rows = b"".join(struct.pack(f"{order}fffB", *row, 9) for row in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)))
    faces = struct.pack(f"{order}B4i", 4, 0, 1, 2, 3) + struct.pack(f"{order}B3i", 3, 0, 1, 2)
    return head.encode() + rows + faces


def binary_stl() -> bytes:
    corners = (0, 0, 0, 1, 0, 0, 0, 1, 0.5)
    return b"solid?".ljust(80) + struct.pack("<I", 1) + struct.pack("<3f9fH", 0, 0, 1, *corners, 0)


MESHES = {
    "usual.off": OFF,
    "glued.off": OFF.replace("OFF\n", "OFF"),
    "spelled.off": "\ufeff# made by hand\r\n\r\nCOFF # a colour each\r\n3 1\r\n"
    + "".join(f"{x} {x * x} .5 1 1 1 1\r\n" for x in range(3))
    + "3 2 1 0 0.5 0.5 0.5",
    "arrow.off": "OFF 4 1 0\n2 -1 0\n.5 0 0\n2 1 0\n0 0 0\n4 0 1 2 3\n",
    "usual.obj": OBJ,
    "arrow.obj": "v 0 -1 2\nv 0 0 .5\nv 0 1 2\nv 0 0 0\nf 1 2 3 4\nf 4 3 2 1\nf 2 3 4 1\n",
    "colour.obj": OBJ.replace("v 1 1 0", "v 1 1 0 .1 nan 1"),
    "text.ply": PLY,
    "arrow.ply": PLY.replace("0 0 0 9\n1 0 0", "0 0 0 9\n1 3 0"),
    "others.ply": PLY.replace("element face", "element mood 1\nproperty float best\nelement face").replace(
        "\n4 0", "\nnan\n4 0"
    ),
    "little.ply": binary_ply("<"),
    "big.ply": binary_ply(">"),
    "text.stl": STL + STL.upper(),
    "normal.stl": STL.replace("normal 0 0 1", "normal nan -inf 1"),
    "mark.stl": STL.replace("a name", "a name \0", 1),
    "binary.stl": binary_stl(),
}
CLOUDS = {
    "blanks.xyz": "# a scan\n\n0 0 1\n1 2 3 // end\n-1e-3 .5 +2\n",
    "normals.txt": "0,0,1,0,0,1\n1,2,3,0,0,1\n",
    "both.xyz": "0; 0; 1\n1; 2; 3\n",
    "cloud.ply": re.sub("element face.*?indices\n", "", PLY, flags=re.DOTALL).replace("4 0 1 2 3\n3 0 1 2\n", ""),
}
WRONG = {
    "words.off": (OFF.replace("1 1 0\n0 1", "1 x 0\n0 1"), "line 5: expected finite numbers"),
    "short.off": (OFF.replace("3 0 1 4\n", ""), "line 8"),
    "surplus.off": (OFF + "3 0 1 2\n", "line 10"),
    "lost.off": (OFF.replace("1 0 0\n", "1 0\n"), "line 4"),
    "corner.off": (OFF.replace("3 0 1 4", "3 0 1 5"), "line 9"),
    "counts.off": (OFF.replace("5 2 0", "5 2 0 7"), "line 2"),
    "other.off": ("PLY\n", "line 1: expected the word OFF"),
    "empty.off": ("", "expected the word OFF"),
    "infinite.off": (OFF.replace("0 0 1\n", "0 0 inf\n"), "line 7"),
    "blank.off": (OFF.replace("1 1 0\n0 1", "1\u00a01 0\n0 1"), "line 5"),
    "corner.obj": (OBJ.replace("4/1", "5/1"), "line 8"),
    "back.obj": (OBJ.replace("-1//3", "-5//3"), "line 9"),
    "short.obj": (OBJ.replace("v 1 1 0", "v 1 1"), "line 5: expected 3 coordinates"),
    "glued.obj": (OBJ.replace("v 1 1 0", "v 1 1\\\n0 0"), "line 5"),
    "last.obj": (OBJ + "f 1 2 \\", "line 10"),
    "faces.obj": ("v 0 0 0\n", "found no triangles"),
    "type.ply": (PLY.replace("float y", "flat y"), "line 6"),
    "corner.ply": (PLY.replace("3 0 1 2", "3 0 1 4"), "line 17"),
    "part.ply": (PLY.replace("3 0 1 2", "3 0 1 1.5"), "line 17"),
    "short.ply": (PLY.replace("0 1 0 9", "0 1 0"), "line 15"),
    "nan.ply": (PLY.replace("0 1 0 9", "0 nan 0 9"), "line 15: expected finite coordinates"),
    "cut.ply": (binary_ply("<")[:-3], "byte"),
    "long.ply": (binary_ply(">") + b"12", "2 bytes more"),
    "twice.ply": (PLY.replace("element face", "element vertex"), "line 9: expected a format, an element"),
    "y.ply": (PLY.replace("float z", "float y"), "line 7: expected a format, an element or a property"),
    "length.ply": (PLY.replace("list uchar", "list float"), "line 10: expected a property"),
    "strip.ply": (PLY.replace("face 2", "tristrips 2"), "found strips of triangles: save it with faces"),
    "word.stl": (STL.replace("outer", "inner"), "line 3"),
    "two.stl": (STL.replace("vertex 1 0 0\n", ""), "3 vertices of each facet"),
    "cut.stl": (binary_stl()[:-1], "has 134 bytes, found 133"),
    "two.xyz": ("0 0 1\n1 2\n", "line 2"),
    "comma.xyz": ("1,5 2,5 3,5\n", "line 1"),
    "missing.xyz": ("1,2,3\n1,,2\n", "line 2"),
    "word.xyz": ("1 2 z\n", "line 1: expected finite numbers, found '1 2 z'"),
    "shape.step": ("", ".off, .obj"),
    "constructor": ("", ".off, .obj"),
}
GENEROUS = {
    "mixed.obj": OBJ.replace("2/1 3/1", "2 3/1").replace("vt 0 0", "vtt 0 0") + "f 1 2\n",
    "open.stl": STL.replace("endsolid a name\n", ""),
    "padded.stl": binary_stl() + b"\0\0",
    "header.txt": "x,y,z\n1,2,3\n",
}
"""Files as some programs write them, which have one reading."""


def given(name: str, content: str | bytes) -> dict[str, str]:
    data = content.encode() if isinstance(content, str) else content
    return {"name": name, "bytes": base64.b64encode(data).decode()}


READ = """given.map(({ name, bytes }) => {
  try {
    const { vertices, triangles } = readShape(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)), name);
    return { vertices: [...vertices], triangles: triangles && [...triangles] };
  } catch (error) { return { error: error.message, kind: error.constructor.name }; }
})"""


@pytest.fixture(scope="module")
def read(in_node: Callable[..., Any]) -> dict[str, Any]:
    """The results of the JavaScript readers for each file."""
    contents = MESHES | CLOUDS | GENEROUS | {name: content for name, (content, _) in WRONG.items()}
    found = in_node("shape_files", READ, [given(name, content) for name, content in contents.items()])
    return dict(zip(contents, found, strict=True))


def as_set(vertices: Any, triangles: Any) -> set[tuple[float, ...]]:
    return {tuple(sorted(map(tuple, np.reshape(vertices, (-1, 3))[corners].tolist()))) for corners in triangles}


@pytest.mark.parametrize("name", MESHES)
def test_meshes_are_those_that_python_reads(read: dict[str, Any], tmp_path: Path, name: str) -> None:
    content = MESHES[name]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    mesh, found = read_mesh(tmp_path / name), read[name]
    assert found["vertices"] == mesh.vertices.ravel().tolist()
    assert as_set(found["vertices"], np.reshape(found["triangles"], (-1, 3))) == as_set(mesh.vertices, mesh.faces)


@pytest.mark.parametrize("place", range(9))
def test_a_polygon_that_is_not_convex_is_covered_and_nothing_else(in_node: Callable[..., Any], place: int) -> None:
    """A U of area 7, starting at each of its corners, with a ninth corner on a straight edge."""
    outline = np.roll([[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3], [0, 1]], -place, axis=0)
    text = "".join(f"v {x} {y} {x + y}\n" for x, y in outline) + "f 1 2 3 4 5 6 7 8 9\n"
    (found,) = in_node("shape_files", READ, [given("u.obj", text)])
    a, b, c = outline[np.reshape(found["triangles"], (-1, 3))].transpose(1, 0, 2)
    areas = ((b - a) * (c - a)[:, ::-1] @ [1, -1]) / 2
    assert (areas >= 0).all()
    assert areas.sum() == 7


@pytest.mark.parametrize("name", CLOUDS)
def test_clouds_are_those_that_python_reads(read: dict[str, Any], tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CLOUDS[name])
    np.testing.assert_allclose(np.reshape(read[name]["vertices"], (-1, 3)), read_cloud(tmp_path / name).points)
    assert read[name]["triangles"] is None


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused_in_one_sentence(read: dict[str, Any], name: str) -> None:
    found = read[name]
    assert found["kind"] == "ReadError"
    assert found["error"].startswith(name)
    assert re.search(rf"{re.escape(WRONG[name][1])}\b", found["error"]) or WRONG[name][1] in found["error"]


@pytest.mark.parametrize(("name", "points"), [*zip(GENEROUS, (4, 3, 3, 1), strict=True)])
def test_files_with_one_reading_are_read(read: dict[str, Any], name: str, points: int) -> None:
    assert len(read[name]["vertices"]) == 3 * points


def test_points_are_drawn_by_area_and_by_seed(in_node: Callable[..., Any]) -> None:
    mesh = {
        "vertices": [0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 5, 1, 0, 5, 0, 2, 5],
        "triangles": [0, 1, 2, 3, 4, 5, 0, 0, 1],
    }
    calls = ", ".join(
        f"[...samplePoints(given, {n}, {seed})]" for n, seed in ((4000, 1), (4000, 1), (100, 1), (100, 2))
    )
    many, again, few, other = in_node("meshes", f"[{calls}]", mesh)
    assert many == again
    assert many[:300] == few
    assert few != other
    points = np.reshape(many, (-1, 3))
    assert np.mean(points[:, 2] == 0) == pytest.approx(0.75, abs=0.03)  # areas 3 and 1
    low = points[points[:, 2] == 0]
    np.testing.assert_allclose(low.mean(axis=0), [1, 2 / 3, 0], atol=0.05)
    assert (low[:, 0] / 3 + low[:, 1] / 2).max() <= 1


def test_some_of_a_cloud_are_chosen_once_each(in_node: Callable[..., Any]) -> None:
    cloud = {"vertices": list(range(30)), "triangles": None}
    program = "[[...samplePoints({ ...given, vertices: new Float64Array(given.vertices) }, 6, 3)]]"
    points = np.reshape(in_node("meshes", program, cloud)[0], (-1, 3))
    assert len({tuple(point) for point in points}) == 6
    assert (np.diff(points, axis=1) == 1).all()


@pytest.mark.parametrize("how", sorted(NORMALIZATIONS.keys() - ABOUT.keys()))
def test_clouds_are_normalised_as_in_python(in_node: Callable[..., Any], how: str) -> None:
    clouds = np.random.default_rng(0).normal([1e3, -5, 2], [1, 4, 2], size=(2, 40, 3))
    clouds[1] = clouds[1, :1]  # without extent
    found = in_node(
        "questions", f"given.map((cloud) => [...normalizePoints(cloud, '{how}')])", clouds.reshape(2, -1).tolist()
    )
    expected = normalize_points(torch.from_numpy(clouds), how).numpy()
    np.testing.assert_allclose(np.reshape(found, clouds.shape), expected, rtol=1e-6, atol=1e-6)
