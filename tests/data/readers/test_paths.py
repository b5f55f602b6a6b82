"""Unreadable paths are reported as such, whatever their suffix; a wrong suffix is reported with the right ones."""

from pathlib import Path

import pytest

from pointset.data.readers.clouds import CloudError
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import MeshError
from pointset.data.readers.paths import path_fault, require_shape_file
from pointset.data.readers.scans import open_scan
from pointset.errors import PointsetError

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
    with pytest.raises(PointsetError, match=r"file\.step: .* in one of \.3mf, .*\.stl, .* in one of \.asc, .*'\.step'"):
        require_shape_file(there / "file.step")
    assert path_fault(there / "file.step") == ""
    require_shape_file(there / "empty.npy")
