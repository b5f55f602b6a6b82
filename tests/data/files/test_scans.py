"""Scans in pieces: every format gives the points that it holds, in pieces, and what is wrong is told with the file."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pointset.data import normalize_chunks, normalize_points, open_scan, read_cloud
from pointset.data.files.clouds import CloudError
from pointset.data.files.open3d_import import import_open3d
from pointset.errors import PointsetError

RNG = np.random.default_rng(0)
COUNT = 217
POINTS = RNG.standard_normal((COUNT, 3))
BOTH = np.hstack([POINTS, RNG.standard_normal((COUNT, 3))])


def ply(order: str, before: str = "", between: str = "") -> bytes:
    lines = ["ply", f"format {order} 1.0", "comment made by hand", before, f"element vertex {COUNT}"]
    lines += ["property float y", between, "property double x", "property float32 z", "end_header", ""]
    return "\n".join(line for line in lines if line or line == lines[-1]).encode()


def ply_binary(order: str) -> bytes:
    """Another element before the vertices, another field between x and y, and the axes in another order."""
    sign = "<" if "little" in order else ">"
    record = np.dtype([("y", f"{sign}f4"), ("red", "u1"), ("x", f"{sign}f8"), ("z", f"{sign}f4")])
    table = np.zeros(COUNT, record)
    table["red"] = 7
    for axis, column in zip("xyz", POINTS.T, strict=True):
        table[axis] = column
    camera = "element camera 2\nproperty short a\nproperty int b"
    return ply(order, camera, "property uchar red") + bytes(2 * 6) + table.tobytes()


def ply_text() -> bytes:
    """Lists are no obstacle where they end with their line."""
    header = ply("ascii", "element camera 2\nproperty list uchar int seen", "property uchar red")
    lines = "\n".join(f"{y!r} 7 {x!r} {z!r}" for x, y, z in POINTS.tolist())
    return header + b"3 1 2 3\n0\n" + lines.encode() + b"\n"


def pcd(kind: str, names: str = "x y z", sizes: str = "4 4 4", counts: str = "1 1 1") -> bytes:
    types = " ".join("U" if size == "1" else "F" for size in sizes.split())
    lines = ["# .PCD v0.7", "VERSION 0.7", f"FIELDS {names}", f"SIZE {sizes}", f"TYPE {types}", f"COUNT {counts}"]
    lines += [f"WIDTH {COUNT}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {COUNT}", f"DATA {kind}", ""]
    return "\n".join(lines).encode()


def pcd_binary() -> bytes:
    """Padding of three bytes, as the Point Cloud Library writes it, and a field beyond."""
    table = np.zeros(COUNT, [("x", "<f4"), ("_", "u1", 3), ("y", "<f8"), ("z", "<f4"), ("ring", "u1")])
    for axis, column in zip("xyz", POINTS.T, strict=True):
        table[axis] = column
    return pcd("binary", "x _ y z ring", "4 1 8 4 1", "1 3 1 1 1") + table.tobytes()


def pcd_text() -> bytes:
    lines = "\n".join(f"{x!r} 1 2 3 {y!r} {z!r} 9" for x, y, z in POINTS.tolist())
    return pcd("ascii", "x _ y z ring", "4 1 8 4 1", "1 3 1 1 1") + lines.encode()


def lines_of(separator: str, table: np.ndarray) -> bytes:
    return "".join(separator.join(map(repr, row)) + "\n" for row in table.tolist()).encode()


FILES: dict[str, Any] = {
    "double.npy": POINTS,
    "normals.npy": BOTH,
    "columns.npy": np.asfortranarray(BOTH),
    "single.npy": POINTS.astype(np.float32),
    "swapped.npy": POINTS.astype(">f8"),
    "little.ply": ply_binary("binary_little_endian"),
    "big.PLY": ply_binary("binary_big_endian"),
    "text.ply": ply_text(),
    "padded.pcd": pcd_binary(),
    "text.pcd": pcd_text(),
    "blank.xyz": b"# x y z\n\n" + lines_of(" ", POINTS).replace(b"\n", b" // row\n"),
    "comma.txt": b"# one\n" * 150 + lines_of(",", BOTH),
}
EXACT = ("double", "normals", "columns", "swapped", "text", "blank", "comma")


def write(path: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_its_points_in_pieces(tmp_path: Path, name: str) -> None:
    scan = open_scan(write(tmp_path / name, FILES[name]), piece=50)
    assert scan.count == COUNT
    for _ in range(2):
        pieces = list(scan())
        assert [piece.shape for piece in pieces] == [(50, 3)] * 4 + [(17, 3)]
        exact = name.startswith(EXACT)
        expected = POINTS if exact else POINTS.astype(np.float32)
        np.testing.assert_allclose(np.concatenate(pieces), expected, rtol=0 if exact else 1e-6)
        assert {piece.dtype for piece in pieces} == {np.dtype(np.float32 if name == "single.npy" else np.float64)}
        assert all(piece.dtype.isnative for piece in pieces)


def test_two_readers_of_one_text_do_not_meet(tmp_path: Path) -> None:
    scan = open_scan(write(tmp_path / "a.xyz", FILES["blank.xyz"]), piece=50)
    for mine, theirs in zip(scan(), scan(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_open3d_writes_is_read(tmp_path: Path) -> None:
    open3d = import_open3d()
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(POINTS))
    cloud.normals = open3d.utility.Vector3dVector(BOTH[:, 3:])
    for name, options in (
        ("a.ply", {}),
        ("b.ply", {"write_ascii": True}),
        ("a.pcd", {}),
        ("b.pcd", {"write_ascii": 1}),
        ("c.pcd", {"compressed": True}),
    ):
        assert open3d.io.write_point_cloud(str(tmp_path / name), cloud, **options)
        found = np.concatenate(list(open_scan(tmp_path / name)()))
        np.testing.assert_allclose(found, read_cloud(tmp_path / name).points, rtol=1e-6)


@pytest.mark.parametrize("name", ["long.npy", "long.xyz"])
def test_a_file_is_never_held(tmp_path: Path, name: str) -> None:
    cloud = np.ones((50_000, 3))
    path = write(tmp_path / name, cloud if name.endswith("npy") else lines_of(" ", cloud))
    gc.collect()
    tracemalloc.start()
    try:
        total = sum(piece.sum() for piece in open_scan(path, piece=1000)())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == cloud.size
    assert peak < cloud.nbytes / 2


HEAD = b"ply\nformat binary_little_endian 1.0\nelement vertex 2\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.off", b"OFF", r"ends in one of .npy, .npz, .pcd, .ply, .txt, .xyz, not in '.off'"),
        ("a.npy", b"garbage", "expected the header of a numpy array"),
        ("a.npy", np.zeros((4, 2)), r"expected numbers \[n, 3\] or \[n, 6\], found float64 \[4, 2\]"),
        ("a.npy", np.zeros((4, 3), complex), "found complex128"),
        ("a.npy", np.zeros((0, 3)), "expected a point cloud, found no point"),
        ("a.ply", b"garbage", "expected a header that ends with end_header: it is another kind of file, or cut off"),
        ("a.ply", b"x" * 200_000, "another kind of file, or cut off"),
        ("a.ply", b"format ascii\nply\nend_header\n", "that begins with ply and its format"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 1\nelement face 1\nend_header\n", "is a mesh, among point"),
        ("a.ply", HEAD + b"property float x\nproperty float y\nend_header\n", "expected x, y and z.*found x, y"),
        ("a.ply", HEAD + b"property quad x\nend_header\n", "not PLY: 'property quad x'"),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement point 1\nproperty int x\nend_header\n",
            "called vertex, found point",
        ),
        (
            "a.ply",
            HEAD.replace(b"element", b"element list 1\nproperty list uchar int a\nelement")
            + b"property float x\nproperty float y\nproperty float z\nend_header\n",
            "has lists in its element list",
        ),
        ("a.pcd", b"garbage", "ends with DATA"),
        ("a.pcd", pcd("binary", "x y i"), "expected the header of a PCD file with fields x, y, z"),
        ("a.pcd", pcd("binary", sizes="4 4"), "a SIZE, a TYPE and a COUNT for each"),
        ("a.pcd", pcd("hex"), "holds its points as 'hex'"),
        (
            "a.xyz",
            b"0 0 0\n1 1\n",
            "a.xyz, line 2: expected 3 or 6 numbers, found 2",
        ),
        ("a.xyz", b"0 0 0\n" * 70 + b"0 0 0 0 0 1\n", r"a.xyz, line 71: expected 3 numbers.*, found 6"),
        ("a.xyz", b"# none\n", "expected a point cloud, found no point"),
        ("a.txt", b"0 0 0\n" * 65 + b"0 nan 0\n", r"a.txt, line 66: expected a finite number, found nan"),
        ("a.ply", ply_text().replace(b"3 1 2 3\n0\n", b"0\n0\n1 2 3\n"), "line 14: expected 4 numbers, found 3"),
    ],
)
def test_what_is_wrong_is_told_with_the_file(tmp_path: Path, name: str, content: Any, words: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(CloudError, match=words) as caught:
        open_scan(path, piece=60)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_file(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match=r"gone.npy: cannot be read: No such file"):
        open_scan(tmp_path / "gone.npy")


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith((".xyz", ".txt"))])
def test_files_that_are_cut_off_are_refused_before_they_are_read(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, FILES[name])
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\n", 0, -1)] if b"text" in name.encode() else content[:-1])
    with pytest.raises(CloudError, match=rf"{name}: expected .* as its header says, found .*cut off"):
        open_scan(path)


def test_a_file_that_becomes_shorter_and_a_number_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npy", POINTS)
    pieces = open_scan(path, piece=50)()
    next(pieces)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(CloudError, match=r"a.npy: has become shorter"):
        list(pieces)
    broken = POINTS.copy()
    broken[123, 1] = np.inf
    with pytest.raises(CloudError, match=r"a.npy: point 123 has a number that is not finite, \[.*inf.*leave it out"):
        list(open_scan(write(path, broken))())


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["unit-sphere", "standardize", "none"]),
    st.integers(1, 40),
    st.sampled_from([0.0, 1e-3, 1.0, 1e4]),
    st.sampled_from([0.0, -3.0, 1e6]),
)
def test_normalised_in_pieces_as_in_memory(how: str, count: int, size: float, place: float) -> None:
    cloud = torch.from_numpy(POINTS[:count] * size + place)
    found = torch.cat([piece.clone() for piece in normalize_chunks(lambda: iter(cloud.split(7)), how, rows=16)()])
    torch.testing.assert_close(found, normalize_points(cloud[None], how)[0], rtol=1e-8, atol=1e-8)


def test_a_sphere_by_hand() -> None:
    """Centre (1, 0, 0), radius 3; mean 1/2 and deviation of the six numbers 4, -2, 0, 0, 1/2, 1/2."""
    sphere = normalize_chunks([np.array([[4, 0, 0]]), np.array([[-2, 0, 0]])], "unit-sphere")
    assert next(sphere()).tolist() == [[1, 0, 0], [-1, 0, 0]]
    numbers = np.array([[4.0, -2, 0], [0, 0.5, 0.5]])
    standard = next(normalize_chunks(numbers, "standardize")())
    np.testing.assert_allclose(standard, (numbers - 0.5) / numbers.std())


def test_a_cloud_without_extent_or_without_points() -> None:
    for how in ("unit-sphere", "standardize"):
        assert next(normalize_chunks(np.full((9, 3), 0.1), how)()).tolist() == [[0.0] * 3] * 9
        assert list(normalize_chunks(np.zeros((0, 3)), how)()) == []


def test_an_unknown_normalisation() -> None:
    with pytest.raises(PointsetError, match=r"unit-sphere.*'box'"):
        normalize_chunks(POINTS, "box")


def test_a_scan_is_chunks(tmp_path: Path) -> None:
    from pointset import create_model

    model = create_model("isab3-pma", classes=4, dim=8).double().eval()
    scan = open_scan(write(tmp_path / "a.npy", POINTS))
    expected = model(normalize_points(torch.from_numpy(POINTS)[None], "unit-sphere")).detach()
    torch.testing.assert_close(model.stream(normalize_chunks(scan, "unit-sphere")), expected)
