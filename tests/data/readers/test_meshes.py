"""Every mesh format and spelling: the arrays read, polygons as triangles that cover them, a sentence for a failure."""

import base64
import json
import struct
import sys

import numpy as np
import pytest
import trimesh

from pointset import PointsetError
from pointset.data import Mesh, MeshError, read_cloud, read_mesh
from pointset.data.axes import upright_mesh, usual_up
from pointset.data.readers.formats import CLOUD_SUFFIXES, LIBRARIES, MESH_SUFFIXES
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
    for size in range(0, len(content) - 1, 7):
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
    with pytest.warns(UserWarning, match=r"a\.dae: 4 lines are left out, only polygons are read"):
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
    for path in paths[::12]:
        if path.parent.name != "off_variants":
            mesh, other = read_mesh(path), trimesh.load_mesh(path, process=False, maintain_order=True)
            np.testing.assert_array_equal(mesh.vertices, other.vertices, err_msg=str(path))
            np.testing.assert_array_equal(mesh.faces, other.faces, err_msg=str(path))


def test_integers_of_a_glb_are_scaled_before_parts_are_placed(tmp_path):
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
    content = json.dumps(document).encode()
    content += b" " * (-len(content) % 4)
    chunks = struct.pack("<2I", len(content), 0x4E4F534A) + content
    chunks += struct.pack("<2I", len(buffer), 0x4E4942) + buffer
    (tmp_path / "a.glb").write_bytes(struct.pack("<4s2I", b"glTF", 2, 12 + len(chunks)) + chunks)
    mesh = read_mesh(tmp_path / "a.glb")
    assert mesh.vertices.max(0).tolist() == pytest.approx([6, 1, 0])
    assert trimesh.Trimesh(mesh.vertices, mesh.faces).area == pytest.approx(2)


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
    with pytest.warns(UserWarning, match=r"a\.stl: (declares no triangle|has 12 bytes more)"):
        mesh = read_mesh(tmp_path / "a.stl")
    assert corners(mesh.vertices, mesh.faces) == corners(BOX.vertices, BOX.faces)


@pytest.mark.parametrize("count", [2, 4])
def test_a_facet_of_two_or_four_vertices_is_named_with_its_line(count, tmp_path):
    lines = STL_TEXT.splitlines()
    lines[3:6] = lines[3:6][:2] if count == 2 else [*lines[3:6], lines[5]]
    (tmp_path / "a.stl").write_text("\n".join(lines))
    with pytest.raises(MeshError, match=rf"a\.stl, line {count + 4}: expected three vertices in a facet"):
        read_mesh(tmp_path / "a.stl")


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
