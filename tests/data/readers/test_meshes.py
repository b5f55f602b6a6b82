"""Every mesh format and spelling: the arrays read, polygons as triangles that cover them, a sentence for a failure."""

import base64
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from pointset import PointsetError
from pointset.data import Mesh, MeshError, read_cloud, read_mesh
from pointset.data.axes import upright_mesh, usual_up
from pointset.data.readers.formats import CLOUD_SUFFIXES, LIBRARIES, MESH_SUFFIXES
from pointset.data.readers.meshes import cut_polygons, mesh_of_polygons
from pointset.data.readers.off import write_off

BOX = trimesh.creation.box(extents=(1, 2, 3))
SHIFT = np.array([10.0, 20.0, 30.0])


def corners(vertices: np.ndarray, faces: np.ndarray) -> list[tuple[float, ...]]:
    """The triangles as coordinates, in no order: formats differ in how they share and order vertices."""
    return sorted(tuple(triangle.ravel().round(6) + 0.0) for triangle in vertices[faces])


@pytest.mark.parametrize("suffix", sorted(MESH_SUFFIXES - {".gltf"}))
@pytest.mark.parametrize("spell", [str.lower, str.upper])
def test_every_format_gives_the_same_triangles(tmp_path, suffix, spell):
    for library in LIBRARIES.get(suffix, ())[1:]:
        pytest.importorskip(library)
    path = tmp_path / f"box{spell(suffix)}"
    if suffix == ".off":
        write_off(path, Mesh(BOX.vertices, BOX.faces))
    else:
        BOX.export(path, file_type=suffix[1:])
    mesh = read_mesh(path)
    assert (mesh.vertices.dtype, mesh.faces.dtype) == (np.float64, np.int64)
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


@pytest.mark.parametrize("file_type", ["glb", "gltf"])
def test_a_scene_becomes_one_mesh_with_its_parts_in_place(tmp_path, file_type):
    scene = trimesh.Scene()
    scene.add_geometry(BOX, geom_name="box", node_name="here")
    scene.graph.update(frame_to="there", matrix=trimesh.transformations.translation_matrix(SHIFT), geometry="box")
    exported = scene.export(file_type=file_type)
    files = exported if isinstance(exported, dict) else {"model.glb": exported}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    mesh = read_mesh(str(tmp_path / f"model.{file_type}"))
    expected = corners(BOX.vertices, BOX.faces) + corners(BOX.vertices + SHIFT, BOX.faces)
    assert corners(mesh.vertices, mesh.faces) == sorted(expected)


@pytest.mark.parametrize("file_type", ["stl_ascii", "stl", "ply", "glb"])
def test_no_cut_off_file_is_read(file_type, tmp_path):
    """trimesh 5.2 shortens some without a word. Text STL may end without endsolid, but not within a facet."""
    content = BOX.export(file_type=file_type)
    content = content.encode() if isinstance(content, str) else content
    path = tmp_path / f"a.{file_type.partition('_')[0]}"
    for size in range(0, len(content) - 1, 3):
        path.write_bytes(content[:size])
        if file_type == "stl_ascii" and content[:size].rstrip().endswith(b"endfacet"):
            with pytest.warns(UserWarning, match=r"a\.stl: does not end with endsolid"):
                mesh = read_mesh(path)
            assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces[: len(mesh.faces)])
        elif not content[:size].rstrip().endswith(b"endsolid"):
            with pytest.raises(MeshError):
                read_mesh(path)


STL_TEXT = BOX.export(file_type="stl_ascii")
STL_SPELLINGS = {
    "padded": BOX.export(file_type="stl") + bytes(100),
    "named": STL_TEXT.replace("solid", "solid a vertex facet normal").replace("\n", "\r\n").encode(),
    "with comments": f"; by hand\n{STL_TEXT}".encode(),
    "in words of two": STL_TEXT.replace("endloop", "end loop").replace("endfacet", "end facet").encode(),
    "a long name": STL_TEXT.replace("solid", "solid " + "c" * 9000, 1).encode(),
    "a binary file that speaks of facets": b"solid facet normal".ljust(80) + BOX.export(file_type="stl")[80:],
    "carriage returns": STL_TEXT.replace("\n", "\r").upper().encode(),
    "of two solids": STL_TEXT.replace("endfacet", "endfacet\nendsolid a\nsolid b", 1).encode(),
}


@pytest.mark.parametrize("content", STL_SPELLINGS.values(), ids=STL_SPELLINGS)
def test_stl_as_programs_write_it(content, tmp_path):
    (tmp_path / "a.stl").write_bytes(content)
    mesh = read_mesh(tmp_path / "a.stl")
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


def ply_faces(order: str, faces: list[list[int]]) -> bytes:
    """A box's PLY, whose faces have several sizes and an index of their own after the corners."""
    head = f"ply\nformat {order} 1.0\nelement vertex 8\nproperty float x\nproperty float y\nproperty float z\n"
    head += f"element face {len(faces)}\nproperty list uchar int vertex_indices\nproperty short group\nend_header\n"
    if order == "ascii":
        rows = [" ".join(map(str, vertex)) for vertex in BOX.vertices]
        rows += [" ".join(map(str, [len(face), *face, 7])) for face in faces]
        return head.encode() + "\n".join(rows).encode()
    sign = "<" if "little" in order else ">"
    body = BOX.vertices.astype(f"{sign}f4").tobytes()
    for face in faces:
        body += bytes([len(face)]) + np.array(face, f"{sign}i4").tobytes() + np.array([7], f"{sign}i2").tobytes()
    return head.encode() + body


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply_as_other_programs_write_it(order, tmp_path):
    """Faces of several sizes, which trimesh 5.2 refuses in binary files, and unusual headers."""
    plain = ply_faces(order, [[0, 1, 3, 2], [0, 1, 5], [4, 5], [1, 3, 7, 5, 4]])
    line = f"format {order} 1.0\n".encode()
    commented = plain.replace(line, b"comment first\n" + line + b"comment a\rb\n")
    for content in (plain, commented, plain.replace(b"end_header\n", b"end_header\r\n")):
        (tmp_path / "a.ply").write_bytes(content)
        with pytest.warns(UserWarning, match="1 of 4 faces"):
            mesh = read_mesh(tmp_path / "a.ply")
        assert len(mesh.faces) == 2 + 1 + 3
        np.testing.assert_allclose(mesh.vertices, BOX.vertices)


def changed_gltf(**changes: object) -> bytes:
    """A box's glTF in one text, with changes of its first accessor, mesh, node or of the whole."""
    files = trimesh.Scene(BOX).export(file_type="gltf", merge_buffers=True)
    document = json.loads(files["model.gltf"])
    for name, content in files.items():
        if name.endswith(".bin"):
            uri = "data:application/octet-stream;base64," + base64.b64encode(content).decode()
            document["buffers"] = [{**document["buffers"][0], "uri": uri}]
    for name, change in changes.items():
        (document if name == "whole" else document[name][0]).update(change)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"whole": {"extensionsRequired": ["KHR_draco_mesh_compression"]}}, "KHR_draco_mesh_compression"),
        ({"accessors": {"sparse": {"count": 1}}}, "sparse"),
        ({"nodes": {"extensions": {"EXT_mesh_gpu_instancing": {}}}}, "instances"),
        ({"meshes": {"primitives": [{"attributes": {"POSITION": 0}, "mode": 6}]}}, "fans of triangles"),
        ({"whole": {"meshes": []}}, "box.gltf"),
        ({"whole": {"accessors": []}}, "damaged"),
    ],
)
def test_gltf_that_would_be_read_as_another_mesh_is_refused(changes, words, tmp_path):
    path = tmp_path / "box.gltf"
    path.write_bytes(changed_gltf())
    assert len(read_mesh(path).faces) == 12
    path.write_bytes(changed_gltf(**changes))
    with pytest.raises(MeshError, match=words):
        read_mesh(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": {"skin": 0, "translation": [9, 0, 0]}},
        {"nodes": {"weights": [0.5]}},
        {"meshes": {"weights": [0.5]}},
    ],
)
def test_gltf_with_skins_and_morphs_is_read_as_it_was_before_them(changes, tmp_path):
    """As Blender and Mixamo write characters; a skin, and not its node, moves a mesh."""
    path = tmp_path / "box.gltf"
    document = json.loads(changed_gltf(**changes))
    if "skin" in document["nodes"][0]:
        document["nodes"][0]["mesh"] = document["nodes"][-1].pop("mesh")
        document["scenes"][0]["nodes"] = [0]
    path.write_text(json.dumps(document))
    with pytest.warns(UserWarning, match=r"box\.gltf: a skin or a morph is not applied"):
        mesh = read_mesh(path)
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


def test_points_and_lines_beside_triangles_of_a_glb_are_counted(tmp_path):
    scene = trimesh.Scene([BOX, trimesh.PointCloud(BOX.vertices), trimesh.load_path([[0, 0, 0], [1, 1, 1]])])
    (tmp_path / "a.glb").write_bytes(scene.export(file_type="glb"))
    with pytest.warns(UserWarning, match=r"a\.glb: 2 parts of points or lines left out"):
        mesh = read_mesh(tmp_path / "a.glb")
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>{up}</asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="12">{places}</float_array>
<technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION"
source="#p"/></vertices><polylist count="1"><input semantic="VERTEX" source="#v" offset="0"/><vcount>4</vcount>
<p>0 1 2 3</p></polylist><lines count="2"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 1 2</p></lines></mesh>
</geometry></library_geometries>
<library_controllers><controller id="c"><skin source="#g"><bind_shape_matrix>1 0 0 5 0 1 0 0 0 0 1 0 0 0 0 1
</bind_shape_matrix><source id="j"><Name_array id="n" count="1">b</Name_array><technique_common><accessor source="#n"
count="1" stride="1"><param name="JOINT" type="name"/></accessor></technique_common></source><source id="m"><float_array
id="f" count="16">1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</float_array><technique_common><accessor source="#f" count="1"
stride="16"><param name="TRANSFORM" type="float4x4"/></accessor></technique_common></source><source id="w"><float_array
id="o" count="1">1</float_array><technique_common><accessor source="#o" count="1" stride="1"><param name="WEIGHT"
type="float"/></accessor></technique_common></source><joints><input semantic="JOINT" source="#j"/><input
semantic="INV_BIND_MATRIX" source="#m"/></joints><vertex_weights count="4"><input semantic="JOINT" source="#j"
offset="0"/><input semantic="WEIGHT" source="#w" offset="1"/><vcount>1 1 1 1</vcount><v>0 0 0 0 0 0 0 0</v>
</vertex_weights></skin></controller></library_controllers>
<library_visual_scenes><visual_scene id="s"><node id="x"><instance_geometry url="#g"/></node><node id="y">
<instance_controller url="#c"/></node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/>
</scene></COLLADA>"""
"""A square with two lines, and again moved by a controller, five to the right."""


@pytest.mark.parametrize(
    ("up", "axis", "raised"), [("<up_axis>Z_UP</up_axis>", "z", 2), ("<up_axis>Y_UP</up_axis>", "y", 1), ("", "y", 1)]
)
def test_a_dae_file_has_its_upward_axis_and_the_parts_that_a_controller_moves(up, axis, raised, tmp_path):
    """With decimal commas, as 3ds Max writes them in some languages."""
    pytest.importorskip("collada")
    path = tmp_path / "a.dae"
    path.write_text(
        DAE.format(up=up, places="0 0 2 1,5 0 2 1,5 1 2 0 1 2" if raised == 2 else "0 2 0 1,5 2 0 1,5 2 1 0 2 1")
    )
    with pytest.warns(UserWarning, match=r"a\.dae: 4 lines beside its polygons are left out"):
        mesh = read_mesh(path)
    assert (mesh.up, len(mesh.faces)) == (axis, 4)
    assert mesh.vertices[:, raised].tolist() == [2] * 8
    assert sorted({*mesh.vertices[:, 0].tolist()}) == [0, 1.5, 5, 6.5]
    assert upright_mesh(mesh).vertices[:, 2].tolist() == [2] * 8
    assert usual_up([str(path)]) == "z"


@pytest.mark.parametrize("suffix", LIBRARIES)
def test_formats_that_need_a_library_name_it(suffix, tmp_path, monkeypatch):
    extra, module, *_ = LIBRARIES[suffix]
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"a{suffix}").touch()
    with pytest.raises(PointsetError, match=rf"a{suffix}.*{module}.*pointset-learn\[{extra}\]"):
        (read_cloud if suffix in CLOUD_SUFFIXES else read_mesh)(tmp_path / f"a{suffix}")


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["modelnet9_obj/**/*.obj", "**/*.off"])
def test_the_real_files_are_read_as_by_trimesh(real_data, pattern):
    paths = sorted(real_data.glob(pattern))
    assert len(paths) >= 180
    for path in paths:
        mesh = read_mesh(path)
        assert len(mesh.faces) > 1
        if path.name[-5] in "0s" and path.parent.name != "off_variants":  # some of them
            other = trimesh.load_mesh(path, process=False, maintain_order=True)
            np.testing.assert_array_equal(mesh.vertices, other.vertices, err_msg=str(path))
            np.testing.assert_array_equal(mesh.faces, other.faces, err_msg=str(path))


@pytest.mark.parametrize("suffix", ["gltf", "glb"])
def test_integers_of_a_gltf_are_scaled_before_parts_are_placed(suffix, tmp_path):
    """As gltfpack writes KHR_mesh_quantization: a unit square of int16, placed twice, five apart."""
    positions = np.array([[0, 0, 0, 0], [32767, 0, 0, 0], [0, 32767, 0, 0], [32767, 32767, 0, 0]], "<i2")
    buffer = positions.tobytes() + np.array([0, 1, 2, 2, 1, 3], "<u2").tobytes()
    document = {
        "asset": {"version": "2.0"},
        "extensionsRequired": ["KHR_mesh_quantization"],
        "scene": 0,
        "scenes": [{"nodes": [0, 1]}],
        "nodes": [{"mesh": 0}, {"mesh": 0, "translation": [5, 0, 0]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5122, "normalized": True, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 6, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": 32, "byteStride": 8},
            {"buffer": 0, "byteOffset": 32, "byteLength": 12},
        ],
        "buffers": [{"byteLength": len(buffer)}],
    }
    if suffix == "gltf":
        document["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(buffer).decode()
    content = json.dumps(document).encode()
    if suffix == "glb":
        content += b" " * (-len(content) % 4)
        chunks = struct.pack("<2I", len(content), 0x4E4F534A) + content
        chunks += struct.pack("<2I", len(buffer), 0x4E4942) + buffer
        content = struct.pack("<4s2I", b"glTF", 2, 12 + len(chunks)) + chunks
    (tmp_path / f"a.{suffix}").write_bytes(content)
    mesh = read_mesh(tmp_path / f"a.{suffix}")
    assert mesh.vertices.max(0).tolist() == pytest.approx([6, 1, 0])
    assert np.linalg.norm(crosses(mesh.vertices, mesh.faces), axis=1).sum() / 2 == pytest.approx(2)


PLY_HEAD = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"


def test_bytes_after_lists_of_several_lengths_are_damage(tmp_path):
    """A length that is wrong would otherwise make other faces of all that follow."""
    content = ply_faces("binary_little_endian", [[0, 1, 3, 2], [0, 1, 5]])
    (tmp_path / "a.ply").write_bytes(content + b"\n")
    assert len(read_mesh(tmp_path / "a.ply").faces) == 3
    (tmp_path / "a.ply").write_bytes(content + b"made by hand")
    with pytest.raises(MeshError, match=r"a\.ply: has 12 bytes after lists of several lengths: it is damaged"):
        read_mesh(tmp_path / "a.ply")


def test_text_of_a_ply_file_with_more_than_its_header_says(tmp_path):
    """Blender 2.47 wrote a comment without its keyword, MeshLab the colors of corners in place of those of a face."""
    head = PLY_HEAD.replace("element vertex", "Created by Blender3D 247\nelement vertex")
    head += "element face 2\nproperty list uchar int vertex_indices\nproperty uchar red\nend_header\n"
    rows = "0 0 0\n1 0 0\n0 1 0\n1 1 0\n3 0 1 2 9 1 1 1 1 1 1 1 1 1\n3 1 3 2 9 1 1 1 1 1 1 1 1 1\n"
    (tmp_path / "a.ply").write_text(head + rows)
    with pytest.warns(UserWarning, match=r"a\.ply: has lines with more numbers than its header says"):
        assert read_mesh(tmp_path / "a.ply").faces.tolist() == [[0, 1, 2], [1, 3, 2]]


def test_strips_of_triangles_in_a_ply_file(tmp_path):
    strips = "element tristrips 1\nproperty list int int vertex_indices\nend_header\n"
    (tmp_path / "a.ply").write_text(PLY_HEAD + strips + "0 0 0\n1 0 0\n0 1 0\n1 1 0\n8 0 1 2 3 -1 3 1 0\n")
    assert read_mesh(tmp_path / "a.ply").faces.tolist() == [[0, 1, 2], [2, 1, 3], [3, 1, 0]]


@pytest.mark.parametrize("change", ["count of 0", "tail"])
def test_a_binary_stl_with_another_end_is_read_with_a_warning(change, tmp_path):
    content = BOX.export(file_type="stl")
    content = content + b"made by hand" if change == "tail" else content[:80] + bytes(4) + content[84:]
    (tmp_path / "a.stl").write_bytes(content)
    with pytest.warns(UserWarning, match=r"a\.stl: (counts no triangle|has 12 bytes more)"):
        mesh = read_mesh(tmp_path / "a.stl")
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


@pytest.mark.parametrize("count", [2, 4])
def test_a_facet_of_two_or_four_vertices_is_named_with_its_line(count, tmp_path):
    lines = STL_TEXT.splitlines()
    lines[3:6] = lines[3:6][:2] if count == 2 else [*lines[3:6], lines[5]]
    (tmp_path / "a.stl").write_text("\n".join(lines))
    with pytest.raises(MeshError, match=rf"a\.stl, line {count + 4}: expected three vertices in a facet"):
        read_mesh(tmp_path / "a.stl")


ARROW = [[2, -1], [0.5, 0], [2, 1], [0, 0]]
U = [[0, 0], [3, 0], [3, 3], [2, 3], [2, 1], [1, 1], [1, 3], [0, 3]]
COMB = [[9, 2], [0, 2], *([x, x % 2] for x in range(10))]
SQUARE, HOLE = [[0, 0], [4, 0], [4, 4], [0, 4]], [[1, 1], [1, 3], [3, 3], [3, 1]]
OUTLINES = {
    "arrow": (ARROW, 0.5),
    "U": (U, 7),
    "U with a corner on an edge": ([*U, [0, 1]], 7),
    "comb": (COMB, 13.5),
    "square with a hole, joined by an edge": ([*SQUARE, SQUARE[0], *HOLE, HOLE[0]], 12),
}


def crosses(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return np.cross(b - a, c - a)


def tilted(outline: list) -> np.ndarray:
    """An outline in a plane that is not parallel to the axes, far from the origin."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    return 1e3 * np.column_stack([outline, np.zeros(len(outline))]) @ turn + [1e4, -2e4, 5e3]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("outline", "area"), OUTLINES.values(), ids=OUTLINES)
def test_a_polygon_is_covered_from_each_of_its_corners(outline, area, backwards):
    vertices, count = tilted(outline), len(outline)
    for first in range(count):
        corners = np.roll(np.arange(count)[:: -1 if backwards else 1], first)
        faces = cut_polygons(vertices, corners, np.array([count]))[0]
        assert len(faces) <= count - 2
        found = crosses(vertices, faces)
        assert np.linalg.norm(found, axis=1).sum() / 2 == pytest.approx(area * 1e6)
        assert np.linalg.norm(found.sum(axis=0)) / 2 == pytest.approx(area * 1e6)  # all turn one way


def test_triangulation_keeps_the_order_of_the_polygons():
    vertices = np.concatenate([tilted(ARROW), tilted([[0, 0], [1, 0], [1, 1], [0, 1], [-1, 0.5]])])
    corners = np.array([4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8])
    faces = mesh_of_polygons(vertices, corners, np.array([3, 4, 5, 4]), "a.obj").faces
    assert faces[[0, 3, 4, 5, 6, 7]].tolist() == [[4, 5, 6], [4, 5, 6], [4, 6, 7], [4, 7, 8], [5, 6, 7], [5, 7, 8]]
    assert {tuple(sorted(face)) for face in faces[1:3].tolist()} == {(0, 1, 3), (1, 2, 3)}


def test_rounding_leaves_a_convex_polygon_a_fan():
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    sides = zip(square, np.roll(square, -1, 0), strict=True)
    outline = np.concatenate([np.linspace(a, b, 6, endpoint=False) for a, b in sides])
    vertices = np.round(tilted(outline.tolist()), 3)  # six digits of its size
    expected = [[0, i, i + 1] for i in range(1, len(vertices) - 1)]
    np.testing.assert_array_equal(cut_polygons(vertices, np.arange(24), np.array([24]))[0], expected)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 12), st.sampled_from(["corners", "straight", "repeated", "folding"]))
def test_triangles_use_every_corner_and_have_the_area_of_the_polygon(seed, count, kind):
    rng = np.random.default_rng(seed)
    angles = (np.arange(count) + 0.9 * rng.random(count)) * 2 * np.pi / count
    angles = rng.permutation(angles) if kind == "folding" else angles
    outline = rng.uniform(0.1, 1, (count, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    if kind in ("straight", "repeated"):
        for place in rng.integers(1, count, 3):
            share = rng.choice([0.25, 0.5]) if kind == "straight" else 0
            outline = np.insert(outline, place, outline[place - 1] * (1 - share) + outline[place] * share, axis=0)
    corners = np.roll(np.arange(len(outline)), rng.integers(count))[:: rng.choice([1, -1])]
    vertices = tilted(outline.tolist())
    if kind == "folding":  # up to its size out of the plane: no triangulation has a right area
        vertices += rng.normal(size=vertices.shape) * 10 ** rng.uniform(-1, 3)
    faces = cut_polygons(vertices, corners, np.array([len(corners)]))[0]
    if kind == "folding" and not len(faces):  # by chance flat, and crossing itself
        assert np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)[2] < 0.01
        return
    if kind != "folding":
        area = np.linalg.norm(np.cross(vertices[corners], vertices[np.roll(corners, -1)]).sum(axis=0))
        assert np.linalg.norm(crosses(vertices, faces), axis=1).sum() == pytest.approx(area, rel=1e-6)
    used = vertices[np.unique(faces)]
    for place in set(corners.tolist()) - set(faces.ravel().tolist()):
        before, after = (vertices[corners[(corners.tolist().index(place) + step) % len(corners)]] for step in (-1, 1))
        ear = np.linalg.norm(np.cross(before - vertices[place], after - vertices[place]))
        assert ear < 1e-3 or np.abs(used - vertices[place]).max(axis=1).min() < 1e-6


@pytest.mark.parametrize("outline", [[[0, 0], [1, 0], [2, 0], [1, 0]], [[1, 1]] * 4, [[0, 0], [1, 0], [0, 0], [0, 1]]])
def test_a_polygon_without_area_stays_a_fan(outline):
    faces = cut_polygons(tilted(outline), np.arange(4), np.array([4]))[0]
    np.testing.assert_array_equal(faces, [[0, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize("outline", [[[0, 0], [1, 1], [1, 0], [0, 1]], [[0, 0], [2, 0], [0, 1], [2, 3]]])
@pytest.mark.parametrize("suffix", ["off", "obj", "ply"])
def test_a_face_that_crosses_itself_or_has_two_corners_is_left_out_of_every_format(outline, suffix, tmp_path):
    rows = [f"{x} {y} 0" for x, y in outline]
    head = PLY_HEAD + "element face 3\nproperty list uchar int vertex_index\nend_header"
    texts = {
        "off": ["OFF 4 3 0", *rows, "4 0 1 2 3", "2 0 1", "3 0 1 2"],
        "obj": [*(f"v {row}" for row in rows), "f 1 2 3 4", "f 1 2", "f 1 2 3", ""],
        "ply": [head, *rows, "4 0 1 2 3", "2 0 1", "3 0 1 2"],
    }
    (tmp_path / f"a.{suffix}").write_text("\n".join(texts[suffix]))
    with pytest.warns(UserWarning, match=rf"a\.{suffix}: 2 of 3 faces"):
        mesh = read_mesh(tmp_path / f"a.{suffix}")
    assert mesh.faces.tolist() == [[0, 1, 2]]


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
OFF_SPELLINGS |= {
    "no word": OFF.removeprefix(b"OFF\n"),
    "colors of four numbers without a prefix": with_columns(b"", b" 255 0 9 255"),
    "textures and normals, as MeshLab": with_columns(b"NST", b" 0 0 1 .5 .5"),
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
    "UTF-16": OBJ.decode().encode("utf-16"),
    "comments behind": OBJ.replace(b"\n", b" # f 1 2 3\n"),
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


def is_refused(path: Path, content: bytes) -> bool:
    try:
        read(path, content)
    except MeshError:
        return True
    return False


def test_no_word_can_be_lost_or_doubled(tmp_path):
    lines = [line.split() for line in OFF.splitlines()]
    for row, words in enumerate(lines[2:], start=2):
        for i, word in enumerate(words):
            for edited in (words[:i] + words[i + 1 :], [*words[:i], word, *words[i:]]):
                legal = edited[:1] == [b"3"] and len(edited) == 5  # one number more is a face's colour
                text = b"\n".join(b" ".join(line) for line in [*lines[:row], edited, *lines[row + 1 :]])
                assert legal or is_refused(tmp_path / "a.off", text), text


def test_a_file_cut_anywhere_is_refused(tmp_path):
    text = OFF.rstrip()
    for end in range(len(text)):
        if not text[end - 1 : end + 1].isdigit():  # cut inside a number: not to be seen if it is the last one
            assert is_refused(tmp_path / "a.off", text[:end]), text[:end]


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
