"""The OBJ reader against every legal spelling of a mesh, and against files that are wrong in one way each."""

import io

import numpy as np
import pytest
import trimesh

from pointset.data.readers.obj import parse_obj

USUAL = b"""# made by hand\nmtllib none.mtl\no plate
v 0 0 0\nv 1.5 0 0\nv 1 1e-2 0\nv 0 1 .5\nvt 0 0\nvn 0 0 1\ng top\nusemtl red\ns off
f 1 2 3\nf 1 3 4\nv -2 -0.5 7\nf -1 4 -4\n"""
VERTICES = [[0, 0, 0], [1.5, 0, 0], [1, 1e-2, 0], [0, 1, 0.5], [-2, -0.5, 7]]
FACES = [[0, 1, 2], [0, 2, 3], [4, 3, 1]]


def with_corners(form: bytes) -> bytes:
    """The usual file with texture coordinates and normals at the corners."""
    lines = USUAL.split(b"\n")
    spelt = [b" ".join([b"f", *(c + form for c in line.split()[1:])]) if line[:2] == b"f " else line for line in lines]
    return b"\n".join(spelt)


SPELLINGS = {
    "plain": USUAL,
    "textures": with_corners(b"/1"),
    "normals": with_corners(b"//-1"),
    "both": with_corners(b"/1/1"),
    "ends": with_corners(b"//"),
    "forms that differ from face to face": USUAL.replace(b"f 1 2 3", b"f 1//1 2//1 3//1").replace(b"-4\n", b"-4 \n"),
    "weights": USUAL.replace(b"\nv ", b"\nv  ").replace(b" 0\nv", b" 0 1\nv").replace(b".5\nvt", b".5 2\nvt")
    .replace(b" 7\n", b" 7 1\n"),
    "tabs": USUAL.replace(b" ", b"\t"),
    "CRLF and spaces at the ends": USUAL.replace(b"\n", b" \r\n").replace(b"off ", b"off"),
    "no final newline": USUAL.rstrip(),
    "a path that ends in a backslash, not at the end of its line": USUAL.replace(b"by hand", b"C:\\a b"),
    "carriage returns": USUAL.replace(b"\n", b"\r"),
    "byte order mark": b"\xef\xbb\xbf" + USUAL,
    "comments behind": USUAL.replace(b"\n", b" # f 1 2 3\n"),
    "blanks before": USUAL.replace(b"\n", b"\n \t"),
    "some colours": USUAL.replace(b"v 1.5 0 0", b"v 1.5 0 0 .1 nan 1"),
    "continued": USUAL.replace(b"f 1 2 3", b"f 1 \\\n 2\\\n 3").replace(b"v 0 0 0", b"v 0\\\r\n 0 \\\n0"),
    "continued names": USUAL.replace(b"g top", b"g a\\").replace(b"by hand", b"C:\\"),
    "continued points": USUAL.replace(b"g top", b"p 1 \\\nf 1 2 3"),
    "curves and other elements": USUAL.replace(
        b"g top", b"l 1 2\np 1\ncstype bezier\nparm u 0 1 \\\n 2\ncurv 0 1 1 2\nend"
    ),
    "signs and zeros": USUAL.replace(b"f 1 2 3", b"f +1 02 3").replace(b"v 0 0 0", b"v +0 -0 000"),
}  # fmt: skip


@pytest.mark.parametrize("content", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_read(content: bytes) -> None:
    mesh = parse_obj(content, "odd.obj")
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, FACES)


def test_relative_indices_count_from_where_the_face_stands() -> None:
    part = b"v 0 0 %d\nv 1 0 %d\nv 0 1 %d\nf -3 -2 -1\n"
    mesh = parse_obj(part % (1, 1, 1) + part % (2, 2, 2) + b"f -6 2 -1\n", "twice.obj")
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 4, 5], [0, 1, 5]])


def test_a_face_may_stand_above_its_vertices() -> None:
    np.testing.assert_array_equal(parse_obj(b"f 1 2 3\n" + USUAL, "above.obj").faces, [FACES[0], *FACES])


@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        (b"f 1 2 3 4\n", [[0, 1, 2], [2, 3, 0]]),
        (b"f 1 2 3 4\nf 2 3 4 5\n", [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 4, 1]]),
        (b"f 1 2 3 4\nf 5 4 3\n", [[0, 1, 2], [2, 3, 0], [4, 3, 2]]),
        (b"f 1 2 3 4\nf 2 3 4 5\nf 5 4 3\n", [[0, 1, 2], [2, 3, 0], [1, 2, 3], [3, 4, 1], [4, 3, 2]]),
        (b"f 5 4 3\nf 1 2 3 4 5\nf 1 2 3 4\n", [[4, 3, 2], [0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 1, 2], [2, 3, 0]]),
    ],
)
def test_polygons_are_cut_as_older_pools_were(faces: bytes, expected: list) -> None:
    head = b"".join(line + b"\n" for line in USUAL.splitlines() if line.startswith(b"v "))
    mesh = parse_obj(head + faces, "polygons.obj")
    np.testing.assert_array_equal(mesh.faces, expected)
    other = trimesh.load_mesh(io.BytesIO(head + faces), file_type="obj", process=False, maintain_order=True)
    np.testing.assert_array_equal(mesh.faces, other.faces)


def test_corners_of_several_forms_and_lines_as_faces() -> None:
    """As SketchUp and Revit, and 3ds Max and CGAL, write them."""
    with pytest.warns(UserWarning, match="2 of 4 faces have fewer than 3 corners"):
        mesh = parse_obj(b"v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\nf 1/1 2 3//1\nf 1 2\nf 3\n", "mixed.obj")
    assert mesh.faces.tolist()[-1] == [0, 1, 2]
