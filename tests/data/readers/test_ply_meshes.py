"""Meshes in PLY files: text and both byte orders give equal arrays, and incomplete files are rejected."""

import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh

from pointset.data.readers import ply_lists
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.ply_header import PlyProperty
from pointset.errors import PointsetError

VERTICES = np.array([[0, 0, 0], [1.5, 0, 0], [1, 1, 0.25], [0, 1, -2], [7, -0.5, 0.1]], np.float32).astype(float)
POLYGONS = [[0, 1, 2], [0, 1, 2, 3], [4, 3, 2, 1, 0]]
TRIANGLES = [[0, 1, 2], [0, 1, 2], [2, 3, 0], [4, 3, 2], [4, 2, 1], [4, 1, 0]]
SOME = [[0, 1, 2], [2, 3, 4]]  # of one size, which are read at once
HEADER = """ply
format {} 1.0
comment made by hand
element camera 1
property short a
property list uchar int seen
element vertex {}
property float x
property uchar red
property float y
property double z
element face {}
property ushort group
property list {} {} vertex_indices
property float quality
end_header
"""
CAMERA = (-3, [1, 2])
CODES = {"uchar": "B", "char": "b", "short": "h", "ushort": "H", "int": "i", "uint": "I"}


def text(polygons: list[list[int]], length: str = "uchar", kind: str = "int") -> str:
    lines = ["-3 2 1 2", *(f"{x} 255 {y} {z}" for x, y, z in VERTICES)]
    lines += [f"9 {len(face)} {' '.join(map(str, face))} nan" for face in polygons]
    return HEADER.format("ascii", len(VERTICES), len(polygons), length, kind) + "\n".join(lines) + "\n"


def binary(polygons: list[list[int]], order: str, length: str = "uchar", kind: str = "int") -> bytes:
    name = "binary_little_endian" if order == "<" else "binary_big_endian"
    body = struct.pack(order + "hB2i", -3, 2, 1, 2)
    body += b"".join(struct.pack(order + "fBfd", x, 255, y, z) for x, y, z in VERTICES)
    for face in polygons:
        code = f"{order}H{CODES[length]}{len(face)}{CODES[kind]}f"
        body += struct.pack(code, 9, len(face), *face, np.nan)
    return HEADER.format(name, len(VERTICES), len(polygons), length, kind).encode() + body


def read(content: bytes | str, folder: Path) -> Mesh:
    path = folder / "any.ply"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_mesh(path)


@pytest.mark.parametrize(("length", "kind"), [("uchar", "int"), ("int", "uchar"), ("short", "uint")])
@pytest.mark.parametrize("form", ["text", "<", ">"])
@pytest.mark.parametrize(("polygons", "expected"), [(POLYGONS, TRIANGLES), (SOME, SOME)], ids=["mixed", "alike"])
def test_all_forms_give_the_same_mesh(
    tmp_path: Path, polygons: list, expected: list, form: str, length: str, kind: str
) -> None:
    content = text(polygons, length, kind) if form == "text" else binary(polygons, form, length, kind)
    mesh = read(content, tmp_path)
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, expected)


def test_faces_may_come_first_and_other_elements_last(tmp_path: Path) -> None:
    head = "ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int vertex_index\nelement vertex 3\n"
    head += "property int x\nproperty int y\nproperty int z\nelement edge 1\nproperty int a\nend_header\n"
    mesh = read(head + "\n3 2 1 0\n\n0 0 0\n1 0 0\n 0 1 0\n4\n\n", tmp_path)
    np.testing.assert_array_equal(mesh.faces, [[2, 1, 0]])
    np.testing.assert_array_equal(mesh.vertices, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("encoding", ["binary", "ascii"])
def test_arrays_are_those_of_trimesh(tmp_path: Path, encoding: str) -> None:
    made = trimesh.creation.icosphere(2)
    mesh = read(made.export(file_type="ply", encoding=encoding), tmp_path)
    other = trimesh.load_mesh(tmp_path / "any.ply", process=False)
    np.testing.assert_array_equal(mesh.vertices, other.vertices)
    np.testing.assert_array_equal(mesh.faces, other.faces)


TEXT = text(POLYGONS)
FIRST_FACE = 23  # its line
BAD_TEXT = {
    "cut in the vertices": ("\n".join(TEXT.split("\n")[:20]), "expected 5 vertices, as its header says, found 3"),
    "cut in the faces": (TEXT.rstrip().rpartition("\n")[0], "expected 3 faces, as its header says, found 2"),
    "a line too many": (TEXT + "9 3 0 1 2 1\n", f"line {FIRST_FACE + 3}: expected the end of the file"),
    "a number too many": (TEXT.replace("9 3 0 1 2 nan", "9 3 0 1 2 nan 1"), f"line {FIRST_FACE}: expected 6 numbers"),
    "a length too large": (TEXT.replace("9 3 0", "9 4 0"), f"line {FIRST_FACE}: expected"),
    "300 in a byte": (TEXT.replace("1.5 255", "1.5 300"), "19: expected a whole number from 0 to 255, found '300'"),
    "an index with a fraction": (TEXT.replace("3 0 1 2", "3 0 1.7 2"), f"line {FIRST_FACE}: expected a whole number"),
    "a negative index": (TEXT.replace("3 0 1 2", "3 0 -1 2"), f"{FIRST_FACE}: expected corners from 0 to 4, found -1"),
    "an index beyond": (TEXT.replace("5 4 3", "5 5 3"), f"{FIRST_FACE + 2}: expected corners from 0 to 4, found 5"),
    "a segment": (TEXT.replace("3 0 1 2", "2 0 1"), f"line {FIRST_FACE}: expected at least 3 corners"),
    "a coordinate that is none": (TEXT.replace("1.5 255", "nan 255"), "line 19: expected a finite number"),
    "no vertices": (TEXT.replace("element vertex 5", "element vertex 0"), "found no vertices"),
    "vertices of another name": (TEXT.replace("element vertex 5", "element point 5"), "found no vertices"),
    "no elements": ("ply\nformat ascii 1.0\nend_header\n", "no vertices: its header announces 'nothing'"),
    "no faces": (TEXT.replace("element face 3", "element face 0"), "no triangles (a point cloud alone has none)"),
    "no z": (TEXT.replace("double z", "double w"), "expected x, y and z of every vertex, found 'x, red, y, w'"),
    "lists in the vertices": (TEXT.replace("uchar red", "list uchar int red"), "has lists in its element 'vertex'"),
    "no corners": (TEXT.replace("vertex_indices", "corners"), "called vertex_indices or vertex_index"),
    "corners that are not whole numbers": (TEXT.replace("int vertex_indices", "float vertex_indices"), "whole numbers"),
    "more than can be": (TEXT.replace("element face 3", "element face 99999999999"), "expected 99999999999 faces"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_a_bad_text_is_refused_with_its_line(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(MeshError) as caught:
        read(content, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "any.ply"))
    assert words in str(caught.value)


@pytest.mark.parametrize("length", ["4", "9999", "99999999999"])
def test_no_room_is_made_for_a_list_longer_than_its_line(length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(ply_lists, "parse_usual", lambda lines, form: made.append(len(form.types)))
    with pytest.raises(PointsetError, match=f"line 7: expected .*{length}"):
        ply_lists.parse_lists([f"{length} 0 1 2"], 7, [PlyProperty("corners", "i4", "u4")], 0, usual=True)
    assert made == [5] * (length == "4")


def flawed(polygons: list[list[int]], order: str, flaw: str) -> tuple[bytes, str]:
    content = binary(polygons, order, "char")
    body = content.index(b"end_header\n") + len(b"end_header\n")
    faces = body + struct.calcsize("=hB2i") + len(VERTICES) * struct.calcsize("=fBfd")
    nan, far = struct.pack(order + "I", 0x7F800001), struct.pack(order + "i", 5)
    return {
        "cut in a face": (content[:-1], "its header says"),
        "cut in the vertices": (content[: body + 30], "its header says"),
        "too long": (content + b"\0", f"byte {len(content)}: expected the end of the file"),
        "a negative length": (content[: faces + 2] + b"\xff" + content[faces + 3 :], f"byte {faces + 2}: expected"),
        "a coordinate that is none": (content[: body + 11] + nan + content[body + 15 :], f"byte {body + 11}: expected"),
        "an index beyond": (content[: faces + 3] + far + content[faces + 7 :], f"byte {faces}: expected corners"),
        "a segment": (binary([[0, 1], *polygons], order, "char"), f"byte {faces}: expected at least 3 corners"),
        "more vertices than bytes": (content.replace(b"vertex 5", b"vertex 9999999999999"), "its header says"),
        "more faces than bytes": (content.replace(b"element face ", b"element face 9999999999"), "its header says"),
    }[flaw]  # fmt: skip


FLAWS = (
    *("cut in a face", "cut in the vertices", "too long", "a negative length", "a coordinate that is none"),
    *("an index beyond", "a segment", "more vertices than bytes", "more faces than bytes"),
)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("polygons", [POLYGONS, SOME], ids=["mixed", "alike"])
@pytest.mark.parametrize("flaw", FLAWS)
def test_a_bad_binary_file_is_refused_with_its_byte(tmp_path: Path, polygons: list, order: str, flaw: str) -> None:
    content, words = flawed(polygons, order, flaw)
    with pytest.raises(MeshError) as caught:
        read(content, tmp_path)
    assert words in str(caught.value)
