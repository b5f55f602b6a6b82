"""The STL reader: binary files by their size, text in every legal spelling, files that are wrong in one way each."""

import struct

import numpy as np
import pytest
import trimesh

from pointset.data.readers import stl
from pointset.data.readers.meshes import MeshError
from pointset.data.readers.stl import parse_stl
from pointset.data.readers.stl_words import StlReader

CORNERS = np.array([[0, 0, 0], [1.5, 0, 0], [0, 1e-2, 0.5], [0, 0, 0], [0, -1, 0], [-2, 0.5, 7]])
FACET = "facet normal 0 0 1\nouter loop\n{}endloop\nendfacet\n"


def text(corners: np.ndarray = CORNERS) -> str:
    vertices = [f"vertex {x:g} {y:g} {z:e}\n" for x, y, z in corners]
    facets = [FACET.format("".join(vertices[i : i + 3])) for i in (0, 3)]
    return f"solid a plate\n{''.join(facets)}endsolid a plate\n"


def binary(header: bytes = b"", count: int = 2) -> bytes:
    records = [struct.pack("<12fH", 0, 0, 1, *CORNERS[i : i + 3].ravel(), 7) for i in (0, 3)]
    return header.ljust(80) + struct.pack("<I", count) + b"".join(records)


USUAL = {
    "plain": text(),
    "indented": text().replace("\n", "\n   \t"),
    "CRLF": text().replace("\n", "\r\n"),
    "upper case": text().upper(),
    "no name": text().replace(" a plate", ""),
    "a name with a keyword and a NUL": text().replace("a plate", "solid facet \0"),
    "blank lines": text().replace("\n", " \n\n"),
    "all on three lines": text().replace("\n", " ").replace("a plate ", "a plate\n").replace("endsolid", "\nendsolid"),
}
ODD = {
    "carriage returns": text().replace("\n", "\r"),
    "a byte order mark": "\ufeff" + text(),
    "no number as a normal": text().replace("0 0 1", "nan -inf 1e999"),
    "two solids": text().replace("facet normal", "endsolid\n\nsolid b\nfacet normal"),
}


@pytest.mark.parametrize("spelt", (USUAL | ODD).values(), ids=USUAL | ODD)
def test_every_spelling_is_read(spelt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = spelt.encode()
    if spelt in USUAL.values():
        np.testing.assert_array_equal(StlReader(content, "plain.stl").read(), CORNERS)
        monkeypatch.setattr(stl, "StlReader", None)  # a call of it would fail
    mesh = parse_stl(content, "any.stl")
    np.testing.assert_array_equal(mesh.vertices, CORNERS)
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("header", [b"", b"solid by a careless program", b"\0" * 80])
def test_a_file_of_the_right_size_is_binary(header: bytes) -> None:
    mesh = parse_stl(binary(header), "binary.stl")
    np.testing.assert_array_equal(mesh.vertices, CORNERS.astype(np.float32))
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("file_type", ["stl", "stl_ascii"])
def test_vertices_and_faces_are_those_of_trimesh(file_type: str) -> None:
    box = trimesh.creation.box((1, 2, 3))
    content = box.export(file_type=file_type)
    mesh = parse_stl(content.encode() if isinstance(content, str) else content, "box.stl")
    np.testing.assert_array_equal(mesh.vertices, box.triangles.reshape(-1, 3))
    np.testing.assert_array_equal(mesh.faces, np.arange(36).reshape(-1, 3))


BAD_TEXT = {
    "cut in the first facet": (text()[:82], 5, "expected vertex after this line, found the end"),
    "cut in the second facet": (text()[: text().rindex("endloop")], 13, "expected endloop after this line"),
    "cut behind a facet": (text()[: text().rindex("endsolid")], 15, "expected facet or endsolid after this line"),
    "a facet only begun": (text().replace("endsolid", "facet normal\nendsolid"), 17, "a number, found 'endsolid'"),
    "a lost vertex": (text().replace("vertex 1.5 0 0.000000e+00\n", ""), 6, "expected vertex, found 'endloop'"),
    "a fourth vertex": (text().replace("endloop", "vertex 1 2 3\nendloop", 1), 7, "expected endloop, found 'vertex'"),
    "a lost coordinate": (text().replace("vertex 1.5 0 ", "vertex 1.5 "), 6, "expected a number, found 'vertex'"),
    "a word": (text().replace("1.5", "1,5"), 5, "expected a number, found '1,5'"),
    "an underscore": (text().replace("1.5", "1_5"), 5, "expected a number"),
    "a point": (text().replace("1.5", "."), 5, "expected a number"),
    "two numbers in one word": (text().replace("1.5 0", "1.5-0 "), 5, "expected a number"),
    "not finite": (text().replace("1.5", "nan"), 5, "expected a finite coordinate"),
    "too large": (text().replace("1.5", "1e999"), 5, "expected a finite coordinate"),
    "no normal": (text().replace("facet normal 0 0 1", "facet"), 3, "expected normal, found 'outer'"),
    "a misspelt word": (text().replace("endfacet", "endfaces", 1), 8, "expected endfacet, found 'endfaces'"),
    "more behind": (text() + "facet", 17, "expected solid, found 'facet'"),
    "more behind a carriage return": (text().rstrip() + "\rplate", 17, "expected solid, found 'plate'"),
}


@pytest.mark.parametrize(("content", "line", "words"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_a_bad_line_of_text_is_named(content: str, line: int, words: str) -> None:
    with pytest.raises(MeshError) as caught:
        parse_stl(content.encode(), "bad.stl")
    assert str(caught.value).startswith(f"bad.stl, line {line}: ")
    assert words in str(caught.value)


WHOLE = binary()
NOT_FINITE = WHOLE[:-10] + b"\1\0\x80\x7f" + WHOLE[-6:]  # a signalling NaN, of which numpy would warn
BAD_BINARY = {
    "cut": (WHOLE[:-20], "bad.stl, byte 80: a binary STL of 2 triangles has 184 bytes, found 164"),
    "cut, called solid": (binary(b"solid\0")[:-20], "bad.stl, byte 80: a binary STL of 2 triangles has 184 bytes"),
    "too long": (WHOLE + b"\0", "184 bytes, found 185"),
    "a wrong count": (binary(count=2**32 - 1), "4294967295 triangles has 214748364834 bytes, found 184"),
    "nothing": (binary(count=0)[:84], "no triangles"),
    "not finite": (NOT_FINITE, "byte 134: expected a triangle with finite coordinates, found [-2.0, nan, 7.0]"),
    "short": (b"STL", "expected STL, which begins with solid or with 84 bytes of header"),
    "UTF-16": (text().encode("utf-16"), "byte 80: a binary STL"),
    "no facet": (b"solid\nendsolid\n", "no triangles"),
}


@pytest.mark.parametrize(("content", "words"), BAD_BINARY.values(), ids=BAD_BINARY)
def test_a_bad_binary_file_says_what_it_lacks(content: bytes, words: str) -> None:
    with pytest.raises(MeshError) as caught:
        parse_stl(content, "bad.stl")
    assert str(caught.value).startswith("bad.stl")
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
