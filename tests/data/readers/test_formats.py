"""Which files are shapes, why a path cannot be read as one, and headers of PLY and PCD."""

from pathlib import Path

import pytest

from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import (
    is_shape_file,
    read_header,
    require_shape_file,
)
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import MeshError
from pointset.data.readers.scans import open_scan
from pointset.errors import PointsetError


@pytest.mark.parametrize(
    ("names", "inside", "at_top"),
    [
        (["a.off", "A.OBJ", "a.pcd", "a.xyz", "readme.off"], True, True),
        (["a.npy", "a.TXT", "license_plate_0.txt", "licence2.txt", "copying_machine.txt", "readme2.txt"], True, False),
        (["README.txt", "readme_first.txt", "License.TXT", "copying.txt", "a.png", "off"], False, False),
    ],
)
def test_files_of_shapes_by_name(names: list[str], inside: bool, at_top: bool) -> None:
    for name in names:
        assert is_shape_file(name, at_top=False) == inside, name
        assert is_shape_file(name, at_top=True) == at_top, name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", "does not exist"),
        ("gone.step", "does not exist"),
        ("folder.d", "is a folder, but a file is read"),
        ("file.step/a", "does not exist"),
        ("a\0b", "does not exist|null"),
        ("file.step", r"file\.step: .* in one of \..*'\.step'"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "folder.d").mkdir()
    (tmp_path / "file.step").touch()
    for read, kind in ((require_shape_file, PointsetError), (open_scan, CloudError), (read_mesh, MeshError)):
        with pytest.raises(kind, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_header_ends_after_its_last_line(end: bytes, tmp_path: Path) -> None:
    text = end.join([b"ply", b" ", b"comment end_header", b"\tend", b"end_header\tx", b""])
    (tmp_path / "a.ply").write_bytes(text + b"\n1 2")
    words = [["ply"], ["comment", "end_header"], ["end"], ["end_header", "x"]]
    assert read_header(tmp_path / "a.ply", "end_header") == (words, len(text))


@pytest.mark.parametrize("content", [b"", b"ply\nend_header", b"ply\n" + b"a\n" * (1 << 19) + b"end_header\n"])
def test_a_header_without_an_end_is_another_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_bytes(content)
    with pytest.raises(PointsetError, match="a header that ends with end_header: it is another kind of file, or cut"):
        read_header(tmp_path / "a.ply", "end_header")
