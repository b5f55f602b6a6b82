"""Which file names are shapes, and whether a folder contains meshes or clouds."""

from pathlib import Path, PurePath

import pytest

from pointset.data.readers.formats import Kind, has_faces, is_shape_file, kind_of_files, suffix_of
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


@pytest.mark.parametrize(
    ("names", "ply", "kind", "left"),
    [
        ([], CLOUD, "meshes", []),
        (["a.off", "b.txt", "C.TXT"], CLOUD, "meshes", ["a.off"]),
        (["a.txt", "b.npy"], CLOUD, "clouds", ["a.txt", "b.npy"]),
        (["A.PLY", "b.txt"], MESH, "meshes", ["A.PLY"]),
        (["a.ply", "b.txt"], CLOUD, "clouds", ["a.ply", "b.txt"]),
        (["a.ply", "b.off"], CLOUD, "meshes", ["a.ply", "b.off"]),
    ],
)
def test_the_kind_of_a_folder(names: list[str], ply: bytes, kind: Kind, left: list[str], tmp_path: Path) -> None:
    listings = [{name: tmp_path / name} for name in names]
    for name in names:
        (tmp_path / name).write_bytes(ply)
    assert kind_of_files(tmp_path, listings) == kind
    assert [name for files in listings for name in files] == left


@pytest.mark.parametrize(("names", "cloud"), [(["a.ply", "b.npy"], "b.npy"), (["a.off", "c.xyz", "b.npy"], "c.xyz")])
def test_a_mix_is_refused_with_the_first_of_each(names: list[str], cloud: str, tmp_path: Path) -> None:
    files = {name: tmp_path / "chair" / name for name in names}
    (tmp_path / "chair").mkdir()
    (tmp_path / "chair" / "a.ply").write_bytes(MESH)
    with pytest.raises(PointsetError) as caught:
        kind_of_files(tmp_path, [files])
    words = f"found chair/{names[0]} beside chair/{cloud}; keep them in two folders"
    assert str(caught.value) == f"{tmp_path} mixes meshes and point clouds: {words}"


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
