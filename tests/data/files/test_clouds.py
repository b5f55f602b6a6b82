"""Cloud files: every format gives the same points, and what is wrong is told with file and line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pointset.data.files.clouds import CloudError
from pointset.data.files.open3d_import import import_open3d
from pointset.data.files.scans import open_scan, read_cloud

RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((17, 3)).astype(np.float32)
NORMALS = RNG.standard_normal((17, 3)).astype(np.float32)
NORMALS /= np.linalg.norm(NORMALS, axis=1, keepdims=True)
BOTH = np.hstack([POINTS, NORMALS])


def text(rows: np.ndarray, separator: str) -> str:
    return "\n".join(separator.join(repr(float(number)) for number in row) for row in rows)


def write_with_open3d(path: Path, **options: Any) -> None:
    open3d = import_open3d()
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(POINTS.astype(float)))
    cloud.normals = open3d.utility.Vector3dVector(NORMALS.astype(float))
    assert open3d.io.write_point_cloud(str(path), cloud, **options)


WRITERS = {
    "blank.xyz": lambda path: path.write_text(text(BOTH, " ")),
    "comma.txt": lambda path: path.write_text(text(BOTH, ",") + "\n"),
    "both.XYZ": lambda path: path.write_bytes(
        b"\xef\xbb\xbf# x, y, z\r\n\r\n" + text(BOTH, " ,\t").replace("\n", " // row\r\n").encode()
    ),
    "array.npy": lambda path: np.save(path, BOTH),
    "one.npz": lambda path: np.savez(path, anything=BOTH),
    "two.npz": lambda path: np.savez(path, points=POINTS.astype(np.float64), normals=NORMALS, labels=np.arange(3)),
    "binary.ply": lambda path: write_with_open3d(path),
    "ascii.pcd": lambda path: write_with_open3d(path, write_ascii=True),
    "binary.pcd": lambda path: write_with_open3d(path),
    "packed.pcd": lambda path: write_with_open3d(path, compressed=True),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_points_and_normals(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    cloud = read_cloud(tmp_path / name, normals=True)
    assert cloud.normals is not None
    assert cloud.points.dtype == cloud.normals.dtype == np.float32
    tolerance = 1e-6 if "ascii" in name else 0  # Open3D writes ten digits
    np.testing.assert_allclose(cloud.points, POINTS, rtol=tolerance)
    np.testing.assert_allclose(cloud.normals, NORMALS, atol=2e-7)
    assert read_cloud(tmp_path / name).normals is None
    whole = np.concatenate(list(open_scan(tmp_path / name, piece=5)()))
    np.testing.assert_array_equal(whole.astype(np.float32), cloud.points)


def test_whole_numbers_are_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.npy").points, [[0, 1, 2], [3, 4, 5]])


def test_normals_become_unit_length(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("0 0 0 0 0 2\n1 1 1 3 0 4\n")
    np.testing.assert_allclose(read_cloud(tmp_path / "a.xyz", normals=True).normals, [[0, 0, 1], [0.6, 0, 0.8]])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xyz", "0 0 0\n1 1\n", r"a.xyz, line 2: expected 3 or 6 numbers, found 2"),
        (
            "a.txt",
            "# x y z\n\n0,0,0\n1,1,1,0,0,1\n",
            r"a.txt, line 4: expected 3 numbers as in the lines before, found 6",
        ),
        ("a.txt", "x y z\n0 0 0\n", r"a.txt, line 1: expected a number, found 'x'"),
        ("a.txt", "0 0 0\n1 nan 1\n", r"a.txt, line 2: expected a finite number, found nan"),
        ("a.txt", "0 0 0\n1 1e999 1\n", r"a.txt, line 2: expected a finite number, found 1e999"),
        ("a.txt", "0 0 0 255\n", r"a.txt, line 1: expected 3 or 6 numbers, found 4"),
        ("a.txt", "", "a.txt: expected a point cloud, found no point"),
        ("a.xyz", "# nothing\n\n", "a.xyz: expected a point cloud, found no point"),
        ("a.xyz", "0 0 0\n".encode("utf-16"), "a.xyz: expected plain text, found UTF-16"),
        ("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'(\n", "a.npy: expected the header of a numpy array"),
        ("a.npy", b"", r"a.npy: expected the header of a numpy array"),
        ("a.npy", np.zeros((4, 2)), r"a.npy: expected numbers \[n, 3\] or \[n, 6\], found float64 \[4, 2\]"),
        ("a.npy", np.zeros((4, 3), complex), r"a.npy: expected numbers.*found complex128 \[4, 3\]"),
        ("a.npy", np.array([["a", "b", "c"]]), r"a.npy: expected numbers.*found <U1"),
        ("a.npy", np.array([[1, None, "x"]], object), r"a.npy: expected numbers.*found object"),
        ("a.npy", np.zeros((0, 3)), "a.npy: expected a point cloud, found no point"),
        ("a.npy", np.array([[0, 0, 0], [1, 2, np.nan]]), "a.npy: point 1 has a number that is not finite"),
        ("a.npy", np.array([[0, 0, 0], [1e39, 0, 0]]), "a.npy: .*too large for float32"),
        ("a.npy", np.array([[4e6, 5e5, 0], [4e6 + 1, 5e5, 0]]), "a.npy: .*1 long and 4e.06 away.*move it"),
        ("a.npz", {"a": BOTH, "b": BOTH}, "a.npz: expected an array called points or .*, found a, b"),
        ("a.npz", {"points": POINTS, "normals": NORMALS[:3]}, r"a.npz: expected as many normals.*\[3, 3\]"),
        ("a.npz", {"points": np.array([None])}, "a.npz: .*allow_pickle=False"),
        ("a.npz", b"PK\x03\x04 cut", "a.npz: .*BadZipFile"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 3\nelement face 1\nend_header\n", "a.ply: is a mesh, among"),
        ("a.ply", b"garbage", "a.ply: .*end_header"),
        ("a.pcd", b"garbage", "a.pcd: .*DATA"),
        ("a.off", b"", "ends in one of .npy, .npz.*'.off'"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, name: str, content: Any, words: str) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content)
    with pytest.raises(CloudError, match=words) as caught:
        read_cloud(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_cut_off_are_refused(tmp_path: Path) -> None:
    for name in ("binary.ply", "ascii.pcd", "binary.pcd", "packed.pcd"):
        WRITERS[name](tmp_path / name)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-50])
        with pytest.raises(CloudError, match=name):
            read_cloud(tmp_path / name)


def test_damage_in_a_compressed_file_is_refused_or_shows_in_its_points(tmp_path: Path) -> None:
    """Open3D ends the process on some of these."""
    WRITERS["packed.pcd"](tmp_path / "a.pcd")
    whole, refused = (tmp_path / "a.pcd").read_bytes(), 0
    for place in range(len(whole) // 3, len(whole)):
        (tmp_path / "a.pcd").write_bytes(whole[:place] + bytes([whole[place] ^ 129]) + whole[place + 1 :])
        try:
            assert len(read_cloud(tmp_path / "a.pcd").points) == len(POINTS)
        except CloudError:
            refused += 1
    assert refused > 10


def test_absent_files_and_absent_normals(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match=r"gone.xyz: cannot be read: No such file"):
        read_cloud(tmp_path / "gone.xyz")
    (tmp_path / "a.xyz").write_text("0 0 0\n")
    with pytest.raises(CloudError, match="normals were asked for"):
        read_cloud(tmp_path / "a.xyz", normals=True)
    (tmp_path / "b.xyz").write_text("0 0 0 0 0 0\n")
    with pytest.raises(CloudError, match="point 0 has a normal without length"):
        read_cloud(tmp_path / "b.xyz", normals=True)
