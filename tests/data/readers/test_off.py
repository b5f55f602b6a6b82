"""The OFF reader against every legal spelling of a mesh, and against files that are wrong in one way each."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pointset.data.readers.meshes import Mesh, MeshError, cut_fans
from pointset.data.readers.off import parse_off, write_off
from pointset.data.readers.reading import read_mesh

coordinates = st.floats(-1e12, 1e12, allow_subnormal=False)
polygon_meshes = st.integers(1, 9).flatmap(
    lambda vertex_count: st.tuples(
        st.lists(st.tuples(*[coordinates] * 3), min_size=vertex_count, max_size=vertex_count),
        st.lists(st.lists(st.integers(0, vertex_count - 1), min_size=3, max_size=6), min_size=1, max_size=7),
    )
)
spaces = st.sampled_from([" ", "  ", "\t", " \t "])
remarks = st.text(st.characters(blacklist_categories=["C", "Z"]), max_size=8).map(lambda text: "#" + text)
fillers = st.lists(st.one_of(st.just(""), spaces, remarks), max_size=2)  # whole lines that say nothing
tails = st.one_of(st.just(""), spaces, remarks, st.tuples(spaces, remarks).map("".join))
face_colours = st.sampled_from([[], ["7"], ["255", "0", "12"], [".5", "1e-1", "1", "0.25"]])
vertex_extras = {"N": ["nan", "-1", "0"], "C3": ["255", "0", "9"], "C4": [".1", "0", "1", "1"]}
float_spellings = st.sampled_from([repr, "{:.17g}".format, "{:+.17e}".format, "{:.17E}".format])


@st.composite
def off_files(draw: st.DrawFn) -> tuple[bytes, np.ndarray, np.ndarray]:
    """A file, its vertices, and the triangles of its polygons."""
    vertices, polygons = draw(polygon_meshes)
    prefixes = draw(st.permutations(draw(st.lists(st.sampled_from(["C3", "C4", "N"]), unique=True))))
    if "C3" in prefixes and "C4" in prefixes:
        prefixes.remove("C3")
    word = "".join(prefix[0] for prefix in prefixes) + "OFF"
    counts = f"{len(vertices)} {len(polygons)}" + draw(st.sampled_from(["", " 0", " 12"]))
    header = draw(st.sampled_from([[word, counts], [word + counts], [f"{word} {counts}"], [f" \t{word}\t{counts}"]]))

    spell = draw(float_spellings)
    lines = header
    for vertex in vertices:
        extras = [number for prefix in prefixes for number in vertex_extras[prefix]]
        lines.append(draw(spaces).join([*map(spell, vertex), *extras]))
    for polygon in polygons:
        lines.append(draw(spaces).join([str(len(polygon)), *map(str, polygon), *draw(face_colours)]))

    spelt: list[str] = []
    for line in lines:
        spelt += [*draw(fillers), line + draw(tails)]
    spelt += draw(fillers)
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = line_end.join(spelt) + draw(st.sampled_from(["", line_end]))
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    faces = cut_fans(np.array(vertices), np.concatenate(polygons), np.array([len(polygon) for polygon in polygons]))
    assume((faces >= 0).all())  # none crosses itself
    return mark + text.encode(), np.array(vertices), faces


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(off_files())
def test_every_legal_spelling_reads_back_exactly(file: tuple[bytes, np.ndarray, np.ndarray]) -> None:
    content, vertices, faces = file
    mesh = parse_off(content, "any.off")
    np.testing.assert_array_equal(mesh.vertices, vertices)
    np.testing.assert_array_equal(mesh.faces, faces)
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)


USUAL = b"OFF\n5 3 0\n0 0 0\n1.5 0 0\n1 1e-2 0\n0 1 .5\n-2 -0.5 7\n3 0 1 2\n3 0 2 3\n3 4 3 1\n"


def outcome(content: bytes) -> Mesh | None:
    try:
        return parse_off(content, "edited.off")
    except MeshError:
        return None


def test_no_word_can_be_lost_or_doubled() -> None:
    lines = [line.split() for line in USUAL.splitlines()]
    for row, words in enumerate(lines[2:], start=2):
        for i, word in enumerate(words):
            for edited in (words[:i] + words[i + 1 :], [*words[:i], word, *words[i:]]):
                legal = edited[:1] == [b"3"] and len(edited) == 5  # one number more is a face's colour
                text = b"\n".join(b" ".join(line) for line in [*lines[:row], edited, *lines[row + 1 :]])
                assert legal or outcome(text) is None, text


def test_a_file_cut_anywhere_is_refused() -> None:
    text = USUAL.rstrip()
    for end in range(len(text)):
        if text[end : end + 1].isdigit() and text[end - 1 : end].isdigit():
            continue  # cut inside a number: not to be seen if it is the last one
        assert outcome(text[:end]) is None, text[:end]


TWO_TRIANGLES = Mesh(
    np.array([[0.0, -0.0, 1 / 3], [1e-11, 1, 0], [-1e11, 0.125, -1e-9], [2, 2, 2]]), np.array([[0, 1, 2], [2, 1, 3]])
)


def test_written_bytes_read_back(tmp_path: Path) -> None:
    write_off(tmp_path / "two.off", TWO_TRIANGLES)
    assert (tmp_path / "two.off").read_bytes() == (
        b"OFF\n4 2 0\n"
        b"0.000000 0.000000 0.333333\n0.000000 1.000000 0.000000\n-100000000000.000000 0.125000 0.000000\n"
        b"2.000000 2.000000 2.000000\n3 0 1 2\n3 2 1 3\n"
    )
    mesh = read_mesh(tmp_path / "two.off")
    np.testing.assert_allclose(mesh.vertices, TWO_TRIANGLES.vertices, rtol=0, atol=5e-7)
    np.testing.assert_array_equal(mesh.faces, TWO_TRIANGLES.faces)


@pytest.mark.parametrize("name", ["bathtub_0001", "bathtub_0002", "bathtub_0003"])
def test_glued_headers_of_modelnet_equal_their_well_formed_twins(real_data: Path, name: str) -> None:
    glued = read_mesh(real_data / "modelnet_off" / "bathtub" / "train" / f"{name}.off")
    twin = read_mesh(real_data / "off_variants" / "well_formed_twins" / f"{name}.off")
    np.testing.assert_array_equal(glued.vertices, twin.vertices)
    np.testing.assert_array_equal(glued.faces, twin.faces)
