"""Kinds of mesh files."""

from typing import Any

import numpy as np

from fuzzing import mutations
from fuzzing.kinds.base import FileKind, same_numbers
from fuzzing.kinds.clouds import PLY_CHANGES
from fuzzing.kinds.mesh_seeds import OBJ_FILES, OFF_FILES
from fuzzing.kinds.parts import header_and_body
from fuzzing.kinds.ply_seeds import mesh_files
from fuzzing.kinds.stl_seeds import STL_BINARY_FILES, STL_FILES
from fuzzing.oracles import obj, off, ply, stl
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import Mesh


def mesh_difference(ours: Mesh, truth: tuple[Any, Any]) -> str:
    """Where a mesh differs from an oracle's vertices and triangles, which may come in another order."""
    vertices, faces = np.array(truth[0], dtype=np.float64), turned(np.array(truth[1]).tolist())
    found = turned(ours.faces.tolist())
    if ours.vertices.shape != vertices.shape or len(found) != len(faces):
        return f"{len(ours.vertices)} vertices and {len(found)} faces, not {len(vertices)} and {len(faces)}"
    if found != faces:
        return f"faces {found}, not {faces}"
    same = same_numbers(ours.vertices, vertices)
    return "" if same else f"vertices {ours.vertices.tolist()}, not {vertices.tolist()}"


def turned(faces: list[list[int]]) -> list[list[int]]:
    """Triangles with the least corner first, sorted: two of the same corners in the same sense are the same."""
    return sorted(min([a, b, c], [b, c, a], [c, a, b]) for a, b, c in faces)


def exact_difference(ours: Mesh, truth: tuple[Any, Any]) -> str:
    """As `mesh_difference`, with vertices to the last bit and faces in the file's order."""
    vertices, faces = np.array(truth[0], dtype=np.float64), np.array(truth[1])
    same = np.array_equal(ours.vertices, vertices) and np.array_equal(ours.faces, faces)
    return "" if same else mesh_difference(ours, truth) or "another order, or vertices rounded"


OFF_WORDS = [b"OFF", b"OFF 3 1 0", b"off", b"NOFF", b"COFF", b"STOFF", b"4OFF", b"nOFF", b"BINARY", b"2", b"3", b"4"]
OFF = FileKind(
    name="off",
    suffix=".off",
    seeds=OFF_FILES,
    mutations=[
        *mutations.TEXT,
        *[mutations.with_comments(b"#")] * 4,
        mutations.with_words(OFF_WORDS),
        mutations.joined(OFF_FILES),
    ],
    read=read_mesh,
    oracle=off.read,
    difference=exact_difference,
)

OBJ_WORDS = [b"v", b"f", b"vn", b"vt", b"o", b"l", b"usemtl", b"\\\n", b"\\", b"f 1 2 3\n", b"v 0 0 1\n", b"V", b"fo"]
OBJ_CORNERS = [b"-1", b"-2", b"-3", b"-4", b"-9", b"1/1", b"2//1", b"1/1/1", b"-1/-1", b"3/", b"1//", b"/1", b"1/1/1/1"]
OBJ = FileKind(
    name="obj",
    suffix=".obj",
    seeds=OBJ_FILES,
    mutations=[
        *mutations.TEXT,
        *[mutations.with_comments(b"#")] * 4,
        *[mutations.replace_number(OBJ_CORNERS)] * 4,
        *[mutations.move_line, mutations.swap_lines, mutations.repeat_line] * 2,
        *[mutations.with_words(OBJ_WORDS)] * 2,
        mutations.joined(OBJ_FILES),
    ],
    read=read_mesh,
    oracle=obj.read,
    difference=mesh_difference,
)

PLY_FILES = mesh_files("ascii")
PLY_BINARY_FILES = [*mesh_files("binary_little_endian"), *mesh_files("binary_big_endian")]
PLY = FileKind(
    name="ply",
    suffix=".ply",
    seeds=PLY_FILES,
    mutations=[*mutations.TEXT, *PLY_CHANGES, mutations.joined(PLY_FILES)],
    read=read_mesh,
    oracle=ply.read_mesh,
    difference=mesh_difference,
)
PLY_BINARY = FileKind(
    name="ply-binary",
    suffix=".ply",
    seeds=PLY_BINARY_FILES,
    mutations=[*[header_and_body(b"end_header", PLY_CHANGES)] * 20, mutations.joined(PLY_BINARY_FILES)],
    read=read_mesh,
    oracle=ply.read_mesh,
    difference=mesh_difference,
)

STL_WORDS = [
    b"solid",
    b"endsolid",
    b"facet",
    b"normal",
    b"outer loop",
    b"vertex",
    b"endloop",
    b"endfacet",
    b"vertex 0 0 1\n",
]
STL = FileKind(
    name="stl",
    suffix=".stl",
    seeds=STL_FILES,
    mutations=[*mutations.TEXT, *[mutations.with_words(STL_WORDS)] * 2, mutations.joined(STL_FILES)],
    read=read_mesh,
    oracle=stl.read,
    difference=mesh_difference,
)
STL_BINARY = FileKind(
    name="stl-binary",
    suffix=".stl",
    seeds=STL_BINARY_FILES,
    mutations=[*mutations.BINARY, mutations.joined([*STL_BINARY_FILES, *STL_FILES])],
    read=read_mesh,
    oracle=stl.read,
    difference=mesh_difference,
)
MESHES = (OFF, OBJ, PLY, PLY_BINARY, STL, STL_BINARY)
