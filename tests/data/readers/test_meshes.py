"""Meshes as values, and every mesh format: the arrays read, and one sentence for every failure."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from pointset.data.readers.formats import MESH_SUFFIXES
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.off import write_off

BOX = trimesh.creation.box(extents=(1, 2, 3))
SHIFT = np.array([10.0, 20.0, 30.0])
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


def corners(vertices: np.ndarray, faces: np.ndarray) -> list[tuple[float, ...]]:
    """The triangles as coordinates, in no order: formats differ in how they share and order vertices."""
    return sorted(tuple(triangle.ravel().round(6) + 0.0) for triangle in vertices[faces])


def two_boxes() -> trimesh.Scene:
    """One box twice, the second time moved."""
    scene = trimesh.Scene()
    scene.add_geometry(BOX, geom_name="box", node_name="here")
    move = np.eye(4)
    move[:3, 3] = SHIFT
    scene.graph.update(frame_to="there", matrix=move, geometry="box")
    return scene


@pytest.mark.parametrize("suffix", sorted(MESH_SUFFIXES - {".gltf"}))
@pytest.mark.parametrize("spell", [str.lower, str.upper])
def test_every_format_gives_the_same_triangles(tmp_path: Path, suffix: str, spell: type) -> None:
    path = tmp_path / f"box{spell(suffix)}"
    if suffix == ".off":
        write_off(path, Mesh(BOX.vertices, BOX.faces))
    else:
        BOX.export(path, file_type=suffix[1:])
    mesh = read_mesh(path)
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


@pytest.mark.parametrize("file_type", ["glb", "gltf"])
def test_a_scene_becomes_one_mesh_with_its_parts_in_place(tmp_path: Path, file_type: str) -> None:
    exported = two_boxes().export(file_type=file_type)
    files = exported if isinstance(exported, dict) else {"model.glb": exported}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    mesh = read_mesh(str(tmp_path / f"model.{file_type}"))
    expected = corners(BOX.vertices, BOX.faces) + corners(BOX.vertices + SHIFT, BOX.faces)
    assert corners(mesh.vertices, mesh.faces) == sorted(expected)


def test_obj_keeps_unused_vertices_cuts_polygons_and_needs_no_material_file(tmp_path: Path) -> None:
    path = tmp_path / "quad.obj"
    vertices = "v 9 9 9\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\n"
    path.write_text(f"mtllib absent.mtl\n{vertices}usemtl red\nf 2 3 4 5\nf -1/1 -2/1 -3/1\n")
    mesh = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices[0], [9, 9, 9])
    assert len(mesh.faces) == 3
    assert corners(mesh.vertices, mesh.faces)[0] == (0, 0, 0, 1, 0, 0, 1, 1, 0)


def cut(file_type: str, **options: str) -> bytes:
    content = BOX.export(file_type=file_type, **options)
    content = content.encode() if isinstance(content, str) else content
    return content[: len(content) * 9 // 10]


BAD_FILES = {
    "missing.obj": (None, "cannot be read: No such file or directory"),
    "points.xyz": (b"0 0 0\n", "ends in one of .glb, .gltf, .obj, .off, .ply, .stl, not in '.xyz'"),
    "mesh": (b"OFF", "not in 'no suffix'"),
    "empty.obj": (b"\n", "found an empty file"),
    "text.obj": (b"hello\n", "line 1: expected a keyword of OBJ"),
    "text.stl": (b"hello\n", "expected STL, which begins with solid"),
    "text.ply": (b"hello\n", "expected a header that ends with end_header"),
    "text.gltf": (b"hello\n", "expected a description in JSON"),
    "points.obj": (TRIANGLE.encode(), "found no triangles (a point cloud alone has none)"),
    "points.ply": (trimesh.PointCloud(BOX.vertices).export(file_type="ply"), "found no triangles"),
    "cut.ply": (cut("ply"), "as its header says: it is cut off or damaged"),
    "cut_text.ply": (cut("ply", encoding="ascii"), "expected 12 faces, as its header says, found 5"),
    "cut.stl": (cut("stl"), "cut.stl, byte 80: a binary STL of 12 triangles has 684 bytes, found 615"),
    "cut.glb": (cut("glb"), "as the header says, found"),
}


@pytest.mark.parametrize("suffix", [".off", ".obj"])
def test_a_folder_is_named(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(MeshError, match=rf"folder\{suffix}: cannot be read: Is a directory"):
        read_mesh(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_a_mesh_error_of_one_sentence(tmp_path: Path, name: str) -> None:
    content, words = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(MeshError) as caught:
        read_mesh(tmp_path / name)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / name))
    assert words in message
    assert message.isprintable()


GOOD = np.eye(3)
BAD_MESHES = {
    "vertices of two numbers": (GOOD[:, :2], [[0, 1, 2]], r"vertices must be numbers \[V, 3\], got float64 \[3, 2\]"),
    "words": (np.array([["a"] * 3] * 3), [[0, 1, 2]], r"vertices must be numbers"),
    "faces of four": (np.eye(4)[:, :3], [[0, 1, 2, 3]], r"faces must be integers \[F, 3\], got int64 \[1, 4\]"),
    "faces of floats": (GOOD, [[0.0, 1.0, 2.0]], "faces must be integers"),
    "no face": (GOOD, np.empty((0, 3), int), "at least one face, got 3 vertices and no face"),
    "not finite": (np.diag([1, np.inf, 1]), [[0, 1, 2]], "vertex 1 has a coordinate that is not finite"),
    "index too large": (GOOD, [[0, 1, 2], [0, 1, 3]], r"face 1 is \[0, 1, 3\], but vertices run from 0 to 2"),
    "index negative": (GOOD, [[0, 1, -1]], r"face 0 is \[0, 1, -1\]"),
}


@pytest.mark.parametrize(("vertices", "faces", "words"), BAD_MESHES.values(), ids=BAD_MESHES)
def test_a_mesh_is_checked_when_it_is_made(vertices: np.ndarray, faces: list, words: str) -> None:
    with pytest.raises(MeshError, match=words):
        Mesh(vertices, np.array(faces))


def test_a_mesh_has_one_kind_of_numbers() -> None:
    mesh = Mesh(np.eye(3, dtype=np.float32), np.array([[0, 1, 2]], dtype=np.uint32))
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)
