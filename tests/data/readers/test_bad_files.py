"""Files that are wrong in one way each: every reader refuses them in one line that names the file and what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from toy import write

from pointset import PointsetError
from pointset.data import CloudError, MeshError, read_cloud, read_mesh
from pointset.data.readers.formats import MESH_SUFFIXES, require_shape_file
from pointset.runs import files

# The two faces stand on lines 7 and 8.
OFF = b"OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n"
FACES = b"3 0 1 2\n3 0 2 3\n"
BAD_OFF: list[tuple[bytes, int, str]] = [
    (b"# only a comment\n", 1, "the word OFF"),
    (b"NXOFF\n4 2 0\n", 1, "C, N or ST"),
    (b"OFF 4\n\n4 2 0\n", 1, "edges, found 'OFF 4'"),
    (b"OFF\n0 0 0\n", 2, "at least one vertex"),
    (OFF.replace(b"1 0 0\n", b"1 0\n") + FACES, 4, "3 numbers for a vertex, found '1 0'"),
    (OFF.replace(b"1 1 0", b"1-1 1 0") + FACES, 5, "only numbers"),
    (OFF.replace(b"1 0 0", b"1 nan 0") + FACES, 4, "finite coordinates, found '1 nan 0'"),
    (b"4OFF\n1 1 0\n2 4 6 1\n3 0 0 0\n", 1, "the word OFF"),
    (b"COFF\n2 1 0\n0 0 0 1 1 1 1\n0 0 0 1 1 1\n3 0 1 1\n", 4, "7 numbers for a vertex"),
    (OFF + b"3 0 1 2\n", 8, "2 faces, a line each, found the end of the file"),
    (OFF + b"3 0 1\n3 0 2 3\n", 7, "as many indices"),
    (OFF + b"3 0 1 2\n3 0 2 4\n", 8, "vertex indices from 0 to 3, found '3 0 2 4'"),
    (OFF + b"0\n3 0 2 3\n", 7, "the number of corners of a face"),
    (OFF + b"3 0 1 2 0 0\n3 0 2 3\n", 7, "a color of 0, 1, 3 or 4 numbers"),
    (OFF.replace(b"\n", b"\r\n") + b"3 0 1 2\r\n3 0 2 9\r\n", 8, "vertex indices from 0 to 3"),
    (b"# a\n\nOFF # b\n# c\n1 1 0\n\n1 0 # 0\n3 0 0 0\n", 7, "found '1 0'"),
]
OBJ = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\n"
BAD_OBJ: list[tuple[bytes, int, str]] = [
    (OBJ + b"f\n", 5, "corners a, a/b"),
    (OBJ + b"f 1 2 0\n", 5, "from 1 to 3"),
    (b"f -1 -2 -3\n" + OBJ, 1, "from 1 to 3, or back from -1"),
    (OBJ + b"f 1 2 4\nv inf 0 0\n", 6, "finite"),
    (OBJ + b"f 1 2 3\nf 3 2 4\n# end\n", 6, "from 1 to 3, or back from -1"),
    (OBJ + b"f 1 2 3.0\n", 5, "whole numbers"),
    (OBJ + b"v 1 2\n", 5, "3 coordinates"),
    (OBJ + b"v" + 8 * b" 1" + b"\n", 5, "found '1 1 1 1 1 1 1 1'"),
    (OBJ + b"v 1 2 x\n", 5, "only numbers"),
]
PLY = b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
FACE = b"element face 1\nproperty list uchar int vertex_index\nend_header"
PCD = b"VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA ascii\n1 2 3\n"
STL = trimesh.creation.box().export(file_type="stl")
POINTS = np.random.default_rng(0).normal(size=(50, 3))


def archive(**arrays: np.ndarray) -> Callable[[Path], None]:
    return lambda path: np.savez_compressed(path, **arrays)


BAD_FILES: list[tuple[str, Any, tuple[str, ...]]] = [
    *(("a.off", content, (f"a.off, line {line}: expected ", words)) for content, line, words in BAD_OFF),
    *(("a.obj", content, (f"a.obj, line {line}: expected ", words)) for content, line, words in BAD_OBJ),
    *((f"a.{suffix}", b"", (f"a.{suffix}",)) for suffix in ("obj", "stl", "glb", "gltf")),
    ("a.obj", OBJ[:24], ("points without faces",)),
    ("a.obj", b"hello\n", ("such as v 0 0 0", "'hello'")),
    ("a.off", b"OFF\n1 0 0\n0 0 0\n", ("points without faces",)),
    ("a.stl", STL[:-1], ("cut off",)),
    ("a.stl", b"hello\n", ("not an STL file",)),
    ("a.gltf", b"hello\n", ("damaged",)),
    ("a.gltf", b"[1]", ("damaged",)),
    ("mesh.ply", b"hello\n", ("end_header",)),
    ("mesh.ply", PLY + b"0 0 0\n", ("points without faces",)),
    ("mesh.ply", PLY.replace(b"end_header", FACE) + b"0 0 0\n3 0 0 1\n", ("from 0 to 0",)),
    ("mesh.ply", PLY.replace(b"end_header", FACE) + b"0 0 0\n3 0 0\n", ("line 11", "'3 0 0'")),
    ("mesh.ply", PLY.replace(b"end_header", FACE.replace(b"face", b"tristrips")) + b"0 0 0\n1 0\n", ("one face",)),
    ("gone.npy", None, ("does not exist",)),
    ("a.npy", b"garbage", ("damaged",)),
    ("a.npy", np.zeros((4, 2)), ("[n, 3]", "[4, 2]")),
    ("a.npy", np.zeros((3, 40)), ("transposed",)),
    ("a.npy", np.array([[1, None, "x"]], object), ("pickle runs any code",)),
    ("a.npz", archive(X=np.array([POINTS, POINTS[:3]], object)), ("pickle runs any code",)),
    ("a.npz", archive(points=np.zeros((4, 16, 3))), ("its own file",)),
    ("a.npy", np.full((2, 3), np.nan), ("none of its 2 points",)),
    ("a.npy", np.array([[0, 0, 0], [1e39, 0, 0]]), ("too large for float32",)),
    ("a.npz", archive(a=POINTS, b=POINTS), ("points", "'a [50, 3], b [50, 3]'", "its own file")),
    ("a.npz", archive(points=POINTS, normals=POINTS[:3]), ("as many normals", "[3, 3]")),
    ("a.npz", archive(vertices=POINTS, faces=np.eye(3, dtype=int)), ("one cloud", "faces [3, 3]")),
    ("a.npz", archive(points=np.zeros((40_000, 3))), ("unpacks to 960,",)),
    ("a.ply", b"garbage", ("end_header",)),
    ("a.ply", PLY.replace(b"end_header", FACE) + b"0 0 0\n3 0 0 0\n", ("is a mesh",)),
    ("a.ply", PLY.replace(b"float z", b"float u") + b"0 0 0\n", ("x, y and z", "'x, y, u'")),
    ("a.ply", PLY.replace(b"float z", b"quad z"), ("'property quad z'",)),
    ("a.ply", PLY.replace(b"vertex", b"point") + b"0 0 0\n", ("vertex", "'point'")),
    ("a.ply", PLY + b"0 0\n", ("line 8", "as many numbers", "'0 0'")),
    ("a.ply", PLY, ("1 entries", "cut off")),
    ("a.pcd", b"garbage", ("not a PCD file",)),
    ("a.pcd", PCD.replace(b"SIZE 4 4 4", b"SIZE 4 4"), ("not a PCD file",)),
    ("a.pcd", PCD.replace(b"POINTS 1", b"POINTS 2"), ("2 points", "1 can be read")),
    ("a.xyz", b"0 0 0\n1 1\n", ("line 2", "3 numbers", "'1 1'")),
    ("a.txt", b"chair bed table\n0 0 0\n", ("line 1", "'chair bed table'")),
    ("a.txt", b"1,5 2,5 3,5\n", ("one separator", "'1,5 2,5 3,5'")),
    ("a.pts", b"3\n0 0 0\n1 1 1\n", ("3 points", "2 can be read")),
    ("a.csv", b"x,y,x,z\n0,0,0,0\n", ("two columns", "'x'")),
    ("a.csv", b"x,y,z\n0,0,0,1\n1,1,1,1\n", ("3 names", "4 numbers")),
    ("a.csv", b"x,y,z\n0,0,0\n1,one,1\n", ("numbers for y", "'one'")),
    ("a.txt", b"", ("no point",)),
    ("a.ply", PLY.replace(b"vertex 1", b"vertex 0"), ("no point",)),
    ("a.csv", b"0,346,0,822,0,33\n-1,303,0,905,0,446\n-0,537,0,581,0,365\n", ("decimal commas",)),
    ("a.csv", b"1,2,3,4,5,6\n7,8,9,1,2,3\n", ("decimal commas",)),
    ("a.csv", b"0,046,0,822,0,33\n1,303,0,905,0,446\n", ("decimal commas",)),
    ("a.csv", b"# one\rx,y,z\r1,2,3\r4,5\r", ("line 4", "3 numbers", "'4,5'")),
]


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES)
def test_a_bad_file_is_refused_in_one_line(tmp_path, monkeypatch, name, content, words):
    monkeypatch.setattr(files, "SMALL", 1 << 16)
    path = tmp_path / name
    if content is not None:
        write(path, content)
    is_mesh = path.suffix in MESH_SUFFIXES and name != "a.ply"
    read, kind = (read_mesh, MeshError) if is_mesh else (read_cloud, CloudError)
    with pytest.raises(kind) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert all(word in message for word in words), message
    assert message.isprintable()
    assert len(message) < len(str(path)) + 300


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone.step", "does not exist"),
        ("folder.d", "is a folder, but a file is read"),
        ("file.step/a", "does not exist"),
        ("a\0b", "does not exist|null"),
        ("file.step", r"file\.step: .* in one of \..*'\.step'"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(name, words, tmp_path):
    (tmp_path / "folder.d").mkdir()
    (tmp_path / "file.step").touch()
    for read, kind in ((require_shape_file, PointsetError), (read_cloud, CloudError), (read_mesh, MeshError)):
        with pytest.raises(kind, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_the_header_of_a_ply_file_ends_after_its_last_line(end, tmp_path):
    head = PLY.replace(b"ply\n", b"ply\n \ncomment end_header\n\tcomment end\n").replace(b"_header\n", b"_header\tx\n")
    (tmp_path / "a.ply").write_bytes(head.replace(b"\n", end) + b"\n1 2 3")
    assert read_cloud(tmp_path / "a.ply").points.tolist() == [[1, 2, 3]]
    for content in (b"", head.rstrip(), b"ply\n" + b"comment a\n" * (1 << 17) + head):
        (tmp_path / "a.ply").write_bytes(content)
        with pytest.raises(CloudError, match="a header from ply to end_header"):
            read_cloud(tmp_path / "a.ply")
