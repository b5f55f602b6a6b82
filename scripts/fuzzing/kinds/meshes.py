"""Kinds of mesh files."""

from typing import Any

import numpy as np

from fuzzing import mutations
from fuzzing.kinds.base import FileKind
from fuzzing.kinds.mesh_seeds import OBJ_FILES, OFF_FILES
from fuzzing.oracles import obj, off
from pointset.data.files.mesh_reader import read_mesh
from pointset.data.files.meshes import Mesh


def mesh_difference(ours: Mesh, truth: tuple[Any, Any]) -> str:
    """Where a mesh differs from an oracle's vertices and triangles."""
    vertices, faces = np.array(truth[0], dtype=np.float64), np.array(truth[1])
    if ours.vertices.shape != vertices.shape or ours.faces.shape != faces.shape:
        return f"{len(ours.vertices)} vertices and {len(ours.faces)} faces, not {len(vertices)} and {len(faces)}"
    if (ours.faces != faces).any():
        return f"faces {ours.faces.tolist()}, not {faces.tolist()}"
    return (
        "" if same_numbers(ours.vertices, vertices) else f"vertices {ours.vertices.tolist()}, not {vertices.tolist()}"
    )


def same_numbers(ours: np.ndarray, truth: np.ndarray) -> bool:
    """Whether numbers are the same, or the same rounded to float32."""
    with np.errstate(over="ignore"):
        rounded = truth.astype(np.float32)
    return bool(((ours == truth) | (ours == rounded)).all())


def exact_difference(ours: Mesh, truth: tuple[Any, Any]) -> str:
    """As `mesh_difference`, with vertices to the last bit."""
    vertices = np.array(truth[0], dtype=np.float64)
    same = ours.vertices.shape != vertices.shape or bool((ours.vertices == vertices).all())
    return mesh_difference(ours, truth) or ("" if same else f"vertices {ours.vertices.tolist()}")


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
    difference=exact_difference,
)
