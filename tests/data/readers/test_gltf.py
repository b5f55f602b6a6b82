"""Reading glTF: scenes with their transforms, as trimesh reads them, and files that are wrong in one way each."""

import base64
import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import Mesh, MeshError

VERTICES = np.array([[0, 0, 0], [1.5, 0, 0], [1, 1, 0.25], [0, 1, -2], [7, -0.5, 0.1]], np.float32)
CORNERS = [0, 1, 2, 2, 3, 4]
BINARY = VERTICES.tobytes() + struct.pack("<6H", *CORNERS)
PLAIN: dict[str, Any] = {
    "asset": {"version": "2.0"},
    "scene": 0,
    "scenes": [{"nodes": [0]}],
    "nodes": [{"mesh": 0}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
    "accessors": [
        {"bufferView": 0, "componentType": 5126, "count": 5, "type": "VEC3"},
        {"bufferView": 1, "componentType": 5123, "count": 6, "type": "SCALAR"},
    ],
    "bufferViews": [{"buffer": 0, "byteLength": 60}, {"buffer": 0, "byteOffset": 60, "byteLength": 12}],
    "buffers": [{"byteLength": 72}],
}
Change = Callable[[dict[str, Any]], Any]


def changed(change: Change) -> dict[str, Any]:
    document = copy.deepcopy(PLAIN)
    change(document)
    return document


def packed(document: dict[str, Any] | bytes, binary: bytes = BINARY) -> bytes:
    description = document if isinstance(document, bytes) else json.dumps(document).encode()
    description += b" " * (-len(description) % 4)
    chunks = struct.pack("<I4s", len(description), b"JSON") + description
    chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4s2I", b"glTF", 2, 12 + len(chunks)) + chunks


def read(content: bytes, folder: Path, suffix: str = ".glb") -> Mesh:
    (folder / f"any{suffix}").write_bytes(content)
    return read_mesh(folder / f"any{suffix}")


def test_a_plain_file_gives_its_arrays(tmp_path: Path) -> None:
    mesh = read(packed(PLAIN), tmp_path)
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    np.testing.assert_array_equal(mesh.faces, np.reshape(CORNERS, (-1, 3)))


@pytest.mark.parametrize("chunk", [b"", b"more"], ids=["empty", "of four bytes"])
def test_chunks_of_other_types_may_follow(tmp_path: Path, chunk: bytes) -> None:
    content = packed(PLAIN) + struct.pack("<I4s", len(chunk), b"MINE") + chunk
    content = content[:8] + struct.pack("<I", len(content)) + content[12:]
    np.testing.assert_array_equal(read(content, tmp_path).vertices, VERTICES)


def test_buffers_may_lie_beside_a_gltf_file_or_inside(tmp_path: Path) -> None:
    (tmp_path / "a b.bin").write_bytes(BINARY)
    for uri in ("a%20b.bin", "data:application/octet-stream;base64," + base64.b64encode(BINARY).decode()):
        document = changed(lambda d, uri=uri: d["buffers"][0].update(uri=uri))
        mesh = read(json.dumps(document).encode(), tmp_path, ".gltf")
        np.testing.assert_array_equal(mesh.vertices, VERTICES)


def turned() -> list[dict[str, Any]]:
    mirror = [1, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 5, 6, 7, 1]
    turn = {"rotation": [0, 0.6, 0, 0.8], "scale": [1, 2, 3], "translation": [1, 2, 3]}
    return [{"children": [1, 2], **turn}, {"mesh": 0, "translation": [0, 0, 9]}, {"mesh": 0, "matrix": mirror}]


def test_nodes_place_their_meshes_as_in_trimesh(tmp_path: Path) -> None:
    mesh = read(packed(changed(lambda d: d.update(nodes=turned()))), tmp_path)
    parts = list(trimesh.load_scene(tmp_path / "any.glb", process=False).dump())
    expected = np.concatenate([part.vertices[part.faces] for part in parts])
    found = mesh.vertices[mesh.faces]
    areas = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])  # a mirrored triangle keeps its outer side
    others = np.cross(expected[:, 1] - expected[:, 0], expected[:, 2] - expected[:, 0])
    order, same = np.lexsort(found.mean(axis=1).T.round(6)), np.lexsort(expected.mean(axis=1).T.round(6))
    np.testing.assert_allclose(found.mean(axis=1)[order], expected.mean(axis=1)[same], atol=1e-12)
    np.testing.assert_allclose(areas[order], others[same], atol=1e-12)


def test_without_scenes_all_roots_are_read(tmp_path: Path) -> None:
    def drop(document: dict[str, Any]) -> None:
        del document["scenes"], document["scene"]
        document["nodes"] = [{"mesh": 0}, {"children": [0]}, {"mesh": 0}]

    assert len(read(packed(changed(drop)), tmp_path).faces) == 4


@pytest.mark.parametrize(
    ("mode", "faces"),
    [(5, [[0, 1, 2], [1, 3, 2], [2, 3, 4]]), (6, [[0, 1, 2], [0, 2, 3], [0, 3, 4]])],
    ids=["strip", "fan"],
)
def test_strips_and_fans_become_triangles(tmp_path: Path, mode: int, faces: list[list[int]]) -> None:
    primitives = [{"attributes": {"POSITION": 0}, "mode": mode}, {"attributes": {"POSITION": 0}, "mode": 0}]
    mesh = read(packed(changed(lambda d: d.update(meshes=[{"primitives": primitives}]))), tmp_path)
    np.testing.assert_array_equal(mesh.faces, faces)


def test_interleaved_vertices_are_read_and_shared_by_primitives(tmp_path: Path) -> None:
    rows = np.hstack([VERTICES, np.full((5, 3), 9, np.float32)])

    def interleave(document: dict[str, Any]) -> None:
        document["bufferViews"] = [{"buffer": 0, "byteLength": 120, "byteStride": 24}, {"buffer": 0, "byteOffset": 120}]
        document["bufferViews"][1]["byteLength"] = 12
        document["buffers"] = [{"byteLength": 132}]
        document["meshes"][0]["primitives"] *= 2

    mesh = read(packed(changed(interleave), rows.tobytes() + BINARY[60:]), tmp_path)
    np.testing.assert_array_equal(mesh.vertices, VERTICES)
    assert len(mesh.faces) == 4


@pytest.mark.parametrize("extension", ["KHR_materials_unlit", "KHR_texture_transform"])
def test_extensions_of_looks_do_not_matter(tmp_path: Path, extension: str) -> None:
    assert len(read(packed(changed(lambda d: d.update(extensionsRequired=[extension]))), tmp_path).faces) == 2


NAN = b"\1\0\x80\x7f" + BINARY[4:]  # a signalling one, of which numpy would warn
BAD_DOCUMENTS: dict[str, tuple[Change, str]] = {
    "version 1": (lambda d: d.update(asset={"version": "1.0"}), "asset.version: expected glTF 2, found '1.0'"),
    "compressed": (lambda d: d.update(extensionsRequired=["KHR_draco"]), "requires the extension 'KHR_draco'"),
    "no such scene": (lambda d: d.update(scene=1), "scenes[1]"),
    "no such node": (lambda d: d["scenes"][0].update(nodes=[3]), "nodes[3]"),
    "a negative node": (lambda d: d["scenes"][0].update(nodes=[-1]), "scenes[0].nodes: expected a list of whole"),
    "a circle": (lambda d: d.update(nodes=[{"mesh": 0, "children": [0]}]), "nodes[0]: expected a node once"),
    "no such mesh": (lambda d: d["nodes"][0].update(mesh=1), "meshes[1]"),
    "a mesh that is a word": (lambda d: d["nodes"][0].update(mesh="0"), "nodes[0].mesh: expected a whole number"),
    "matrix and scale": (lambda d: d["nodes"][0].update(matrix=[1] * 16, scale=[1] * 3), "nodes[0]: expected a matrix"),
    "no rotation": (lambda d: d["nodes"][0].update(rotation=[0, 0, 0, 2]), "nodes[0].rotation: expected a quaternion"),
    "a short scale": (lambda d: d["nodes"][0].update(scale=[1, 1]), "nodes[0].scale: expected 3 numbers"),
    "an endless scale": (lambda d: d["nodes"][0].update(scale=[1, 1e308, 1]), "nodes[0].scale: expected 3 finite"),
    "a skin": (lambda d: d["nodes"][0].update(skin=0), "nodes[0]: has a skin"),
    "a morphed shape": (lambda d: d["meshes"][0].update(weights=[0.5]), "nodes[0]: has a morphed shape"),
    "a mode": (lambda d: d["meshes"][0]["primitives"][0].update(mode=7), "meshes[0].primitives[0].mode"),
    "points alone": (lambda d: d["meshes"][0]["primitives"][0].update(mode=0), "no triangles"),
    "no scene at all": (lambda d: d["scenes"][0].update(nodes=[]), "no triangles"),
    "no positions": (lambda d: d["meshes"][0]["primitives"][0].update(attributes={}), "attributes.POSITION"),
    "vertices of two numbers": (lambda d: d["accessors"][0].update(type="VEC2"), "accessors[0].type: expected VEC3"),
    "vertices of doubles": (lambda d: d["accessors"][0].update(componentType=5130), "accessors[0].componentType"),
    "a sparse accessor": (lambda d: d["accessors"][0].update(sparse={}), "accessors[0]: is sparse"),
    "no view": (lambda d: d["accessors"][0].pop("bufferView"), "accessors[0].bufferView: expected a whole number"),
    "more vertices than bytes": (lambda d: d["accessors"][0].update(count=10**15), "accessors[0]: expected 10000"),
    "a count below 0": (lambda d: d["accessors"][0].update(count=-5), "accessors[0].count: expected a whole number"),
    "a view beyond": (lambda d: d["bufferViews"][0].update(byteOffset=13), "bufferViews[0]: expected its bytes"),
    "a wrong stride": (lambda d: d["bufferViews"][0].update(byteStride=8), "bufferViews[0].byteStride"),
    "two corners": (lambda d: d["accessors"][1].update(count=5), "meshes[0].primitives[0]: expected three corners"),
    "an index beyond": (lambda d: d["accessors"][0].update(count=4), "expected indices from 0 to 3, found 4"),
    "a buffer too long": (lambda d: d["buffers"][0].update(byteLength=80), "buffers[0]: expected 80 bytes, found 72"),
    "a buffer too short": (lambda d: d["buffers"][0].update(byteLength=68), "buffers[0]: expected 68 bytes, found 72"),
    "a missing file": (lambda d: d["buffers"][0].update(uri="none.bin"), "uri: expected a file that is there"),
    "a device": (lambda d: d["buffers"][0].update(uri="/dev/zero"), "buffers[0].uri: expected a file beside this one"),
    "no base64": (lambda d: d["buffers"][0].update(uri="data:;base64,?"), "buffers[0].uri: expected data in base64"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
def test_a_bad_description_is_named_by_its_place(tmp_path: Path, change: Change, words: str) -> None:
    with pytest.raises(MeshError) as caught:
        read(packed(changed(change)), tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'any.glb'}: ")
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


WHOLE = packed(PLAIN)
BAD_BYTES = {
    "another format": (b"OFF" + bytes(30), "begins with the word glTF"),
    "version 1": (WHOLE[:4] + b"\1" + WHOLE[5:], "byte 4: expected version 2"),
    "cut": (WHOLE[:-4], f"byte 8: expected {len(WHOLE)} bytes"),
    "a wrong chunk": (WHOLE[:12] + b"\xff\xff\xff\x7f" + WHOLE[16:], "byte 12: expected the length of a chunk"),
    "no JSON": (packed(b"{"), "expected a description in JSON"),
    "deep JSON": (packed(b"[" * 100_000), "expected a description in JSON"),
    "a long number": (packed(b'{"a": ' + b"9" * 5000 + b"}"), "expected a description in JSON"),
    "a key twice": (packed(b'{"scene": 0, "scene": 1}'), "'scene' again"),
    "no object": (packed(b"[]"), "that is an object"),
    "not finite": (packed(PLAIN, NAN), "accessors[0]: expected finite coordinates"),
}


@pytest.mark.parametrize(("content", "words"), BAD_BYTES.values(), ids=BAD_BYTES)
def test_a_bad_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(MeshError) as caught:
        read(content, tmp_path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < len(str(tmp_path)) + 250


def test_a_small_file_that_repeats_its_mesh_without_end_is_refused(tmp_path: Path) -> None:
    vertices = np.zeros((30_000, 3), np.float32)

    def repeat(document: dict[str, Any]) -> None:
        document["nodes"] = [{"mesh": 0}] * 1000
        document["scenes"] = [{"nodes": [*range(1000)]}]
        document["meshes"] = [{"primitives": [{"attributes": {"POSITION": 0}}]}]
        document["accessors"][0]["count"] = len(vertices)
        document["bufferViews"] = [{"buffer": 0, "byteLength": vertices.nbytes}]
        document["buffers"] = [{"byteLength": vertices.nbytes}]

    with pytest.raises(MeshError, match="repeats its meshes"):
        read(packed(changed(repeat), vertices.tobytes()), tmp_path)
