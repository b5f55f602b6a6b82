"""OFF and OBJ: every legal spelling of a mesh, and files of which a word or their end is missing."""

import io

import numpy as np
import pytest
import trimesh

from pointset.data import Mesh, MeshError, read_mesh
from pointset.data.readers.obj import parse_obj
from pointset.data.readers.off import parse_off, write_off

VERTICES = [[0, 0, 0], [1.5, 0, 0], [1, 1e-2, 0], [0, 1, 0.5], [-2, -0.5, 7]]
FACES = [[0, 1, 2], [0, 2, 3], [4, 3, 1]]
OFF = b"OFF\n5 3 0\n0 0 0\n1.5 0 0\n1 1e-2 0\n0 1 .5\n-2 -0.5 7\n3 0 1 2\n3 0 2 3\n3 4 3 1\n"
OBJ = b"""# made by hand\nmtllib none.mtl\no plate
v 0 0 0\nv 1.5 0 0\nv 1 1e-2 0\nv 0 1 .5\nvt 0 0\nvn 0 0 1\ng top\nusemtl red\ns off
f 1 2 3\nf 1 3 4\nv -2 -0.5 7\nf -1 4 -4\n"""


def with_columns(prefix: bytes, numbers: bytes) -> bytes:
    """The OFF file with further numbers of its vertices."""
    _, counts, *rows = OFF.splitlines()
    rows = [row + numbers if number < len(VERTICES) else row for number, row in enumerate(rows)]
    return b"\n".join([prefix + b"OFF", counts, *rows])


def with_corners(form: bytes) -> bytes:
    """The OBJ file with texture coordinates and normals at the corners."""
    lines = OBJ.split(b"\n")
    spelt = [b" ".join([b"f", *(c + form for c in line.split()[1:])]) if line[:2] == b"f " else line for line in lines]
    return b"\n".join(spelt)


OFF_SPELLINGS = {
    "plain": OFF,
    "counts behind the word": OFF.replace(b"OFF\n", b"OFF"),
    "word and counts on one line": OFF.replace(b"OFF\n", b" \tOFF\t"),
    "two counts": OFF.replace(b"5 3 0", b"5 3"),
    "tabs": OFF.replace(b" ", b" \t "),
    "CRLF": OFF.replace(b"\n", b"\r\n"),
    "carriage returns": OFF.replace(b"\n", b"\r"),
    "no final newline": OFF.rstrip(),
    "byte order mark": b"\xef\xbb\xbf" + OFF,
    "remarks and blank lines": OFF.replace(b"\n", b" #1 2 3\n\n \t\n# 4\n"),
    "signs and exponents": OFF.replace(b"1.5 0 0", b"+1.5E+00 -0 000"),
    "normals": with_columns(b"N", b" nan -1 0"),
    "colours of three numbers": with_columns(b"C", b" 255 0 9"),
    "colours of four numbers": with_columns(b"C", b" .1 0 1 1"),
    "colours and normals": with_columns(b"CN", b" 255 0 9 nan -1 0"),
    "normals and colours": with_columns(b"NC", b" nan -1 0 .1 0 1 1"),
    "coloured faces": OFF.replace(b"3 0 1 2", b"3 0 1 2 7").replace(b"3 0 2 3", b"3 0 2 3 .5 1e-1 1 0.25"),
    "coloured faces of whole numbers": OFF.replace(b"3 4 3 1", b"3 4 3 1 255 0 12"),
    "a polygon": OFF.replace(b"5 3 0", b"5 2 0").replace(b"3 0 1 2\n3 0 2 3", b"4 0 1 2 3"),
}
OBJ_SPELLINGS = {
    "plain": OBJ,
    "textures": with_corners(b"/1"),
    "normals": with_corners(b"//-1"),
    "both": with_corners(b"/1/1"),
    "ends": with_corners(b"//"),
    "forms that differ from face to face": OBJ.replace(b"f 1 2 3", b"f 1//1 2//1 3//1").replace(b"-4\n", b"-4 \n"),
    "weights": OBJ.replace(b"\nv ", b"\nv  ").replace(b" 0\nv", b" 0 1\nv").replace(b".5\nvt", b".5 2\nvt")
    .replace(b" 7\n", b" 7 1\n"),
    "tabs": OBJ.replace(b" ", b"\t"),
    "CRLF and spaces at the ends": OBJ.replace(b"\n", b" \r\n").replace(b"off ", b"off"),
    "no final newline": OBJ.rstrip(),
    "a path that ends in a backslash, not at the end of its line": OBJ.replace(b"by hand", b"C:\\a b"),
    "carriage returns": OBJ.replace(b"\n", b"\r"),
    "byte order mark": b"\xef\xbb\xbf" + OBJ,
    "comments behind": OBJ.replace(b"\n", b" # f 1 2 3\n"),
    "blanks before": OBJ.replace(b"\n", b"\n \t"),
    "some colours": OBJ.replace(b"v 1.5 0 0", b"v 1.5 0 0 .1 nan 1"),
    "continued": OBJ.replace(b"f 1 2 3", b"f 1 \\\n 2\\\n 3").replace(b"v 0 0 0", b"v 0\\\r\n 0 \\\n0"),
    "continued names": OBJ.replace(b"g top", b"g a\\").replace(b"by hand", b"C:\\"),
    "continued points": OBJ.replace(b"g top", b"p 1 \\\nf 1 2 3"),
    "curves and other elements": OBJ.replace(
        b"g top", b"l 1 2\np 1\ncstype bezier\nparm u 0 1 \\\n 2\ncurv 0 1 1 2\nend"
    ),
    "a face above its vertices": OBJ.replace(b"f 1 2 3\n", b"").replace(b"v 0 0 0", b"f 1 2 3\nv 0 0 0"),
    "signs and zeros": OBJ.replace(b"f 1 2 3", b"f +1 02 3").replace(b"v 0 0 0", b"v +0 -0 000"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "content"),
    [
        *(pytest.param(parse_off, content, id=f"OFF, {name}") for name, content in OFF_SPELLINGS.items()),
        *(pytest.param(parse_obj, content, id=f"OBJ, {name}") for name, content in OBJ_SPELLINGS.items()),
    ],
)
def test_every_spelling_is_read(parse, content):
    mesh = parse(content, "odd")
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, FACES)
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)


def is_refused(content: bytes) -> bool:
    try:
        parse_off(content, "edited.off")
    except MeshError:
        return True
    return False


def test_no_word_can_be_lost_or_doubled():
    lines = [line.split() for line in OFF.splitlines()]
    for row, words in enumerate(lines[2:], start=2):
        for i, word in enumerate(words):
            for edited in (words[:i] + words[i + 1 :], [*words[:i], word, *words[i:]]):
                legal = edited[:1] == [b"3"] and len(edited) == 5  # one number more is a face's colour
                text = b"\n".join(b" ".join(line) for line in [*lines[:row], edited, *lines[row + 1 :]])
                assert legal or is_refused(text), text


def test_a_file_cut_anywhere_is_refused():
    text = OFF.rstrip()
    for end in range(len(text)):
        if not text[end - 1 : end + 1].isdigit():  # cut inside a number: not to be seen if it is the last one
            assert is_refused(text[:end]), text[:end]


def test_written_bytes_read_back(tmp_path):
    vertices = np.array([[0.0, -0.0, 1 / 3], [1e-11, 1, 0], [-1e11, 0.125, -1e-9], [2, 2, 2]])
    write_off(tmp_path / "two.off", Mesh(vertices, np.array([[0, 1, 2], [2, 1, 3]])))
    assert (tmp_path / "two.off").read_bytes() == (
        b"OFF\n4 2 0\n"
        b"0.000000 0.000000 0.333333\n0.000000 1.000000 0.000000\n-100000000000.000000 0.125000 0.000000\n"
        b"2.000000 2.000000 2.000000\n3 0 1 2\n3 2 1 3\n"
    )
    mesh = read_mesh(tmp_path / "two.off")
    np.testing.assert_allclose(mesh.vertices, vertices, rtol=0, atol=5e-7)


def test_relative_indices_count_from_where_the_face_stands():
    part = b"v 0 0 %d\nv 1 0 %d\nv 0 1 %d\nf -3 -2 -1\n"
    mesh = parse_obj(part % (1, 1, 1) + part % (2, 2, 2) + b"f -6 2 -1\n", "twice.obj")
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 4, 5], [0, 1, 5]])


@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        (b"f 1 2 3 4\n", [[0, 1, 2], [2, 3, 0]]),
        (b"f 1 2 3 4\nf 2 3 4 5\nf 5 4 3\n", [[0, 1, 2], [2, 3, 0], [1, 2, 3], [3, 4, 1], [4, 3, 2]]),
        (b"f 5 4 3\nf 1 2 3 4 5\nf 1 2 3 4\n", [[4, 3, 2], [0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 1, 2], [2, 3, 0]]),
        (b"f 1 2 3 4\nf 2 3 4 5\n", [[0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 4, 1]]),
    ],
)
def test_polygons_are_cut_as_older_pools_were(faces, expected):
    head = b"".join(line + b"\n" for line in OBJ.splitlines() if line.startswith(b"v "))
    mesh = parse_obj(head + faces, "polygons.obj")
    np.testing.assert_array_equal(mesh.faces, expected)
    other = trimesh.load_mesh(io.BytesIO(head + faces), file_type="obj", process=False, maintain_order=True)
    np.testing.assert_array_equal(mesh.faces, other.faces)


def test_corners_of_several_forms_and_lines_as_faces():
    """As SketchUp and Revit, and 3ds Max and CGAL, write them."""
    with pytest.warns(UserWarning, match="2 of 4 faces have fewer than 3 corners"):
        mesh = parse_obj(b"v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\nf 1/1 2 3//1\nf 1 2\nf 3\n", "mixed.obj")
    assert mesh.faces.tolist()[-1] == [0, 1, 2]
