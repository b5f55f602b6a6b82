"""Spellings of OFF and OBJ that are read, and files of which a word is lost that are refused."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data import Mesh, MeshError, read_mesh
from pointset.data.readers.off import write_off

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
    "no word": OFF.removeprefix(b"OFF\n"),
    "colors of four numbers without a prefix": with_columns(b"", b" 255 0 9 255"),
    "textures and normals, as MeshLab": with_columns(b"NST", b" 0 0 1 .5 .5"),
}
OBJ_SPELLINGS = {
    "plain": OBJ,
    "textures": with_corners(b"/1"),
    "normals": with_corners(b"//-1"),
    "both": with_corners(b"/1/1"),
    "forms that differ from face to face": OBJ.replace(b"f 1 2 3", b"f 1//1 2//1 3//1").replace(b"-4\n", b"-4 \n"),
    "weights": OBJ.replace(b"\nv ", b"\nv  ").replace(b" 0\nv", b" 0 1\nv").replace(b".5\nvt", b".5 2\nvt")
    .replace(b" 7\n", b" 7 1\n"),
    "CRLF and spaces at the ends": OBJ.replace(b"\n", b" \r\n").replace(b"off ", b"off"),
    "a path that ends in a backslash, not at the end of its line": OBJ.replace(b"by hand", b"C:\\a b"),
    "UTF-16": OBJ.decode().encode("utf-16"),
    "blanks before": OBJ.replace(b"\n", b"\n \t"),
    "some colours": OBJ.replace(b"v 1.5 0 0", b"v 1.5 0 0 .1 nan 1"),
    "continued": OBJ.replace(b"f 1 2 3", b"f 1 \\\n 2\\\n 3").replace(b"v 0 0 0", b"v 0\\\r\n 0 \\\n0"),
    "continued names": OBJ.replace(b"g top", b"g a\\").replace(b"by hand", b"C:\\"),
    "continued points": OBJ.replace(b"g top", b"p 1 \\\nf 1 2 3"),
    "curves and others": OBJ.replace(b"g top", b"l 1 2\np 1\ncstype bezier\nparm u 0 1 \\\n 2\ncurv 0 1 1 2\nend"),
    "a face above its vertices": OBJ.replace(b"f 1 2 3\n", b"").replace(b"v 0 0 0", b"f 1 2 3\nv 0 0 0"),
    "signs and zeros": OBJ.replace(b"f 1 2 3", b"f +1 02 3").replace(b"v 0 0 0", b"v +0 -0 000"),
}  # fmt: skip


def read(path: Path, content: bytes) -> Mesh:
    path.write_bytes(content)
    return read_mesh(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(pytest.param("a.off", content, id=f"OFF, {name}") for name, content in OFF_SPELLINGS.items()),
        *(pytest.param("a.obj", content, id=f"OBJ, {name}") for name, content in OBJ_SPELLINGS.items()),
    ],
)
def test_every_spelling_is_read(name, content, tmp_path):
    mesh = read(tmp_path / name, content)
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, FACES)
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)


def test_no_word_can_be_lost_or_doubled(tmp_path):
    lines = [line.split() for line in OFF.splitlines()]
    for row, words in enumerate(lines[2:], start=2):
        for i, word in enumerate(words):
            for edited in (words[:i] + words[i + 1 :], [*words[:i], word, *words[i:]]):
                legal = edited[:1] == [b"3"] and len(edited) == 5  # one number more is a face's colour
                text = b"\n".join(b" ".join(line) for line in [*lines[:row], edited, *lines[row + 1 :]])
                if not legal:
                    with pytest.raises(MeshError):
                        read(tmp_path / "a.off", text)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    text = OFF.rstrip()
    for end in range(len(text)):
        if not text[end - 1 : end + 1].isdigit():  # cut inside a number: not to be seen if it is the last one
            with pytest.raises(MeshError):
                read(tmp_path / "a.off", text[:end])


def test_written_bytes_read_back(tmp_path):
    vertices = np.array([[0.0, -0.0, 1 / 3], [1e-11, 1, 0], [-1e11, 0.125, -1e-9], [2, 2, 2]])
    write_off(tmp_path / "two.off", Mesh(vertices, np.array([[0, 1, 2], [2, 1, 3]])))
    mesh = read_mesh(tmp_path / "two.off")
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [2, 1, 3]])
    np.testing.assert_allclose(mesh.vertices, vertices, rtol=0, atol=5e-7)


def test_relative_indices_count_from_where_the_face_stands(tmp_path):
    part = b"v 0 0 %d\nv 1 0 %d\nv 0 1 %d\nf -3 -2 -1\n"
    mesh = read(tmp_path / "a.obj", part % (1, 1, 1) + part % (2, 2, 2) + b"f -6 2 -1\n")
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 4, 5], [0, 1, 5]])


def test_corners_of_several_forms_and_lines_as_faces(tmp_path):
    """As SketchUp and Revit, and 3ds Max and CGAL, write them."""
    with pytest.warns(UserWarning, match="2 of 4 faces have fewer than 3 corners"):
        mesh = read(tmp_path / "a.obj", b"v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\nf 1/1 2 3//1\nf 1 2\nf 3\n")
    assert mesh.faces.tolist()[-1] == [0, 1, 2]
