"""Which files are shapes, and why a path cannot be read as one."""

from pathlib import Path, PurePath

import pytest

from pointset.data.readers.clouds import CloudError
from pointset.data.readers.formats import has_faces, is_shape_file, require_shape_file, suffix_of
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import MeshError
from pointset.data.readers.scans import open_scan
from pointset.errors import PointsetError

MESH, CLOUD = (
    b"ply\nelement vertex 3\nelement face 1\nend_header\n",
    b"ply\nelement vertex 3\nelement face 0\nend_header\n",
)


@pytest.mark.parametrize("name", ["a.off", "A.OFF", "a.b.Ply", "a", "off", ".off", "chair/train/a.obj", "a b.xyz"])
def test_a_suffix_is_that_of_pathlib(name: str) -> None:
    assert suffix_of(name) == PurePath(name).suffix.lower()


@pytest.mark.parametrize(
    ("name", "inside", "at_top"),
    [
        *[("a.off", True, True), ("A.OBJ", True, True), ("a.pcd", True, True), ("a.xyz", True, True)],
        *[
            ("a.npy", True, False),
            ("a.TXT", True, False),
            ("README.txt", False, False),
            ("readme_first.txt", False, False),
            ("License.TXT", False, False),
            ("copying.txt", False, False),
            ("license_plate_0.txt", True, False),
            ("licence2.txt", True, False),
            ("copying_machine.txt", True, False),
            ("readme2.txt", True, False),
        ],
        *[("readme.off", True, True), ("a.png", False, False), ("off", False, False)],
    ],
)
def test_files_of_shapes_by_name(name: str, inside: bool, at_top: bool) -> None:
    assert is_shape_file(name, at_top=False) == inside
    assert is_shape_file(name, at_top=True) == at_top


def test_faces_are_those_that_a_header_announces(tmp_path: Path) -> None:
    assert not has_faces(tmp_path / "none.ply")
    for content, expected in [
        (MESH, True),
        (CLOUD, False),
        (MESH.replace(b"element face", b"element tristrips"), True),
        (b"ply\nelement vertex 1\nend_header\nelement face 1", False),
    ]:
        (tmp_path / "a.ply").write_bytes(content)
        assert has_faces(tmp_path / "a.ply") == expected


FAULTS = [
    ("gone", "there is no such file or folder"),
    ("gone.step", "there is no such file or folder"),
    ("folder", "is a folder, but a file is read"),
    ("folder.d", "is a folder"),
    ("file.step/a", "cannot be read: Not a directory"),
    ("a\0b", "cannot be read: "),
]


@pytest.fixture
def there(tmp_path: Path) -> Path:
    for name in ("folder", "folder.d"):
        (tmp_path / name).mkdir()
    (tmp_path / "file.step").touch()
    (tmp_path / "empty.npy").touch()
    return tmp_path


@pytest.mark.parametrize(("name", "words"), FAULTS)
def test_a_path_without_a_file_is_told_before_its_suffix(name: str, words: str, there: Path) -> None:
    with pytest.raises(PointsetError, match=words):
        require_shape_file(there / name)
    with pytest.raises(CloudError, match=words):
        open_scan(there / name)
    with pytest.raises(MeshError, match=words):
        read_mesh(there / name)


def test_a_wrong_suffix_is_told_with_those_of_meshes_and_of_clouds(there: Path) -> None:
    with pytest.raises(PointsetError, match=r"file\.step: .* in one of \.3mf, \.asc, .*\.stl, .*'\.step'"):
        require_shape_file(there / "file.step")
    require_shape_file(there / "empty.npy")
