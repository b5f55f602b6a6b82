"""Files of points, LAS among them: every format gives its points, and errors name the file, line and value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import laspy
import numpy as np
import pytest
from toy import write

from pointset.data import CloudError, read_cloud
from pointset.data.readers.formats import naming
from pointset.data.sampling import import_open3d

RNG = np.random.default_rng(0)
COUNT = 217
POINTS = RNG.standard_normal((COUNT, 3))
NORMALS = RNG.standard_normal((COUNT, 3))
NORMALS /= np.linalg.norm(NORMALS, axis=1, keepdims=True)
BOTH = np.hstack([POINTS, NORMALS])
RISING = np.arange(COUNT) % 200


def ply(order: str, before: str = "", between: str = "") -> bytes:
    lines = ["ply", f"format {order} 1.0", "comment made by hand", before, f"element vertex {COUNT}"]
    lines += ["property float y", between, "property double x", "property float32 z", "end_header", ""]
    return "\n".join(line for line in lines if line or line == lines[-1]).encode()


def ply_binary(order: str) -> bytes:
    """Another element before the vertices, another field between x and y, and the axes in another order."""
    sign = "<" if "little" in order else ">"
    record = np.dtype([("y", f"{sign}f4"), ("red", "u1"), ("x", f"{sign}f8"), ("z", f"{sign}f4")])
    table = np.zeros(COUNT, record)
    table["red"] = RISING
    for axis, column in zip("xyz", POINTS.T, strict=True):
        table[axis] = column
    camera = "element camera 2\nproperty short a\nproperty int b"
    return ply(order, camera, "property uchar red") + bytes(2 * 6) + table.tobytes()


def ply_text() -> bytes:
    """Lists are allowed if they end with their line."""
    header = ply("ascii", "element camera 2\nproperty list uchar int seen", "property uchar red")
    lines = "\n".join(f"{y!r} {red} {x!r} {z!r}" for red, (x, y, z) in zip(RISING, POINTS.tolist(), strict=True))
    return header + b"3 1 2 3\n0\n" + lines.encode() + b"\n"


def pcd(kind: str, names: str = "x y z", sizes: str = "4 4 4", counts: str = "1 1 1") -> bytes:
    types = " ".join("U" if size == "1" else "F" for size in sizes.split())
    lines = ["# .PCD v0.7", "VERSION 0.7", f"FIELDS {names}", f"SIZE {sizes}", f"TYPE {types}", f"COUNT {counts}"]
    lines += [f"WIDTH {COUNT}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {COUNT}", f"DATA {kind}", ""]
    return "\n".join(lines).encode()


def pcd_binary() -> bytes:
    """With padding of three bytes, as written by the Point Cloud Library, and a field after it."""
    table = np.zeros(COUNT, [("x", "<f4"), ("_", "u1", 3), ("y", "<f8"), ("z", "<f4"), ("ring", "u1")])
    for axis, column in zip(("x", "y", "z", "ring"), [*POINTS.T, RISING], strict=True):
        table[axis] = column
    return pcd("binary", "x _ y z ring", "4 1 8 4 1", "1 3 1 1 1") + table.tobytes()


def pcd_text() -> bytes:
    rows = "\n".join(f"{x!r} 1 2 3 {y!r} {z!r} {ring}" for ring, (x, y, z) in zip(RISING, POINTS.tolist(), strict=True))
    return pcd("ascii", "x _ y z ring", "4 1 8 4 1", "1 3 1 1 1") + rows.encode()


def lines_of(separator: str, table: np.ndarray) -> bytes:
    return "".join(separator.join(map(repr, row)) + "\n" for row in table.tolist()).encode()


def with_open3d(**options: Any) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        open3d = import_open3d()
        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(POINTS))
        cloud.normals = open3d.utility.Vector3dVector(NORMALS)
        assert open3d.io.write_point_cloud(str(path), cloud, **options)

    return save


def archive(**arrays: np.ndarray) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **arrays)


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
    "mixed.XYZ": b"\xef\xbb\xbf# x, y, z\r\n\r\n" + lines_of(" ,\t", BOTH).replace(b"\n", b" // row\r\n"),
    "one.npz": archive(anything=BOTH),
    "two.npz": archive(points=POINTS, normals=NORMALS, labels=np.arange(3), columns=RISING),
    "open3d.ply": with_open3d(),
    "open3d_packed.pcd": with_open3d(compressed=True),
}
SINGLE = ("single.npy", "open3d_packed.pcd")
ROUNDED = dict.fromkeys(("little.ply", "big.PLY", "text.ply", "text.pcd", "padded.pcd", *SINGLE), 1e-6)
"""Relative errors of files with float32."""
RISES = dict.fromkeys(("little.ply", "big.PLY", "text.ply"), "red") | dict.fromkeys(("padded.pcd", "text.pcd"), "ring")
RISES |= {"two.npz": "columns"}
"""The features that count the points."""
WITH_NORMALS = ("normals", "columns", "comma", "mixed", "one", "two", "open3d")


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_its_points(tmp_path, name):
    path = write(tmp_path / name, FILES[name])
    cloud = read_cloud(path)
    assert (cloud.points.dtype, cloud.normals) == (np.float32, None)
    np.testing.assert_allclose(cloud.points, POINTS.astype(np.float32), rtol=ROUNDED.get(name, 0))
    if name.startswith(WITH_NORMALS):
        normals = read_cloud(path, normals=True).normals
        np.testing.assert_allclose(normals, NORMALS, atol=1e-7)
    else:
        with pytest.raises(CloudError, match="lacks the feature 'normals'"):
            read_cloud(path, normals=True)
    if name in RISES:
        cloud = read_cloud(path, normals=name.startswith(WITH_NORMALS), features=[RISES[name]])
        np.testing.assert_array_equal(cloud.features, RISING[:, None])


@pytest.mark.parametrize("suffix", ["npy", "txt"])
def test_columns_behind_normals_are_features(tmp_path, suffix):
    table = np.column_stack([BOTH, RISING])
    path = write(tmp_path / f"a.{suffix}", table if suffix == "npy" else lines_of(",", table))
    cloud = read_cloud(path, normals=True, features=["columns"])
    np.testing.assert_allclose(cloud.normals, NORMALS, atol=1e-7)
    np.testing.assert_array_equal(cloud.features, RISING[:, None])
    path = write(tmp_path / "a.csv", "x,y,z,Größe,Å\n1,2,3,7,8\n4,5,6,7,8\n".encode())
    np.testing.assert_array_equal(read_cloud(path, features=["Größe", "Å"]).features, [[7, 8], [7, 8]])


def test_whole_numbers_are_numbers_and_normals_become_unit_length(tmp_path):
    path = write(tmp_path / "a.npy", np.array([[0, 1, 2, 0, 0, 2], [3, 4, 5, 3, 0, 4]]))
    cloud = read_cloud(path, normals=True)
    np.testing.assert_array_equal(cloud.points, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_allclose(cloud.normals, [[0, 0, 1], [0.6, 0, 0.8]])
    with pytest.raises(CloudError, match="point 1 has a normal of length 0"):
        read_cloud(write(path, np.array([[0, 0, 0, 0, 0, 1], [1, 1, 1, 0, 0, 0]])), normals=True)
    colors = np.array([[0.5, 1, 2, 255, 0, 3], [3, 4, 5, 0, 0, 0], [6, 7, 9, 40, 41, 42]])
    write(path, colors)
    with pytest.raises(CloudError, match="has whole numbers from 0 to 255 for normals, which look like colors"):
        read_cloud(path, normals=True)
    np.testing.assert_array_equal(read_cloud(path, features=["columns"]).features, colors[:, 3:])


HEAD = b"ply\nformat binary_little_endian 1.0\nelement vertex 2\n"
AXES = b"property float x\nproperty float y\nproperty float z\nend_header\n"
GENEROUS: dict[str, Any] = {
    "kitti.npy": np.array([[1, 2, 3, 0.5], [4, 5, 6, 0.25]], np.float32),
    "records.npy": np.array([(1, 2, 3, 9), (4, 5, 6, 9)], [(name, "f4") for name in ("x", "Y", "z", "i")]),
    "header.csv": b"X,Y,Z,Scalar field\n1,2,3,0.5\n4,5,6,0.5\n",
    "cloudcompare.txt": b"//X Y Z R G B Intensity\n2\n1 2 3 255 0 7 0.5\n4 5 6 0 0 1 0.25\n",
    "pandas.csv": b",x,y,z\n0,1,2,3\n1,4,5,6\n",
    "commas.csv": b"x,y,z,\n1,2,3,\n4,5,6,\n",
    "quotes.csv": b'"X";"Y";"Z"\n"1";"2";"3"\n"4";"5";"6"\n',
    "newline.ply": HEAD + AXES + np.arange(1, 7).astype("<f4").tobytes() + b"\r\n",
    "windows.pcd": pcd("ascii").replace(b"217", b"3") + b"1 2 3\n-nan(ind) -nan(ind) -nan(ind)\n4 5 6\n",
    "spaces.pcd": b"# .PCD v.5\nVERSION .5\nCOLUMNS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 2\nHEIGHT 1\nDATA ascii\n"
    b"1\t2  3 \r\n4 5 6\n",
    "alone.obj": b"o scan\nv 1 2 3 0.5 0 1\nvn 0 0 2\nv 4 5 6 0 1 0\nvn 0 1 0\n",
    "alone.off": b"OFF\n2 0 0\n1 2 3\n4 5 6\n",
    "records.npz": archive(anything=np.array([(1, 2, 3, 9), (4, 5, 6, 9)], [(name, "f4") for name in "xYzi"])),
    "count.txt": b"2\n1 2 3\n4 5 6\n",
    "semicolons.asc": b"1;2;3\n4;5;6;\n"[:-2] + b"\n",
    "leica.pts": b"2\n1 2 3 -500 10 20 30\n4 5 6 -400 40 50 60\n",
    "normals.xyzn": b"1 2 3 0 0 2\n4 5 6 0 1 0\n",
    "excel.csv": b"sep=;\nx;y;z\n1;2;3\n4;5;6\n",
    "comment.txt": "# in Ångström \x85\nx y z\n1 2 3\n4 5 6\n".encode(),
    "latin.txt": "# in Ångström\nx y z\n1 2 3\n4 5 6\n".encode("latin-1"),
    "paraview.csv": b'"i","Points:0","Points:1","Points:2"\n7,1,2,3\n8,4,5,6\n',
    "veloview.csv": b'"Points_m_XYZ:0","Points_m_XYZ:1","Points_m_XYZ:2","i"\n1,2,3,7\n4,5,6,7\n',
    "units.csv": b"x [m],y [m],z (m)\n1,2,3\n4,5,6\n",
    "ros.csv": b"pos_z,pos_y,pos_x\n3,2,1\n6,5,4\n",
    "voxels.csv": b"1,2,3\n4,5,6\n",
    "labels.csv": b'time,x,y,z,label,i\n09:00,1,2,3,"chair, old",\n09:01,4,5,6,table,7\n',
    "powershell.xyz": "1 2 3\n4 5 6\n".encode("utf-16"),
    "commas.pcd": pcd("ascii").replace(b"217", b"2") + b"1,2,3\n4,5,6\n",
    "flags.ply": (HEAD + AXES).replace(b"binary_little_endian", b"ascii").replace(b"end_", b"property bool seen\nend_")
    + b"1 2 3 0\n4 5 6 1\n",
    "colors.xyzrgb": b"1 2 3 0.5 0 1\n4 5 6 0 1 0\n",
}
"""Files as other programs write them, with the points (1, 2, 3) and (4, 5, 6)."""


@pytest.mark.filterwarnings("ignore:.*(no position|columns that are not numbers)")
@pytest.mark.parametrize("name", GENEROUS)
def test_files_of_other_programs_are_read(tmp_path, name):
    cloud = read_cloud(write(tmp_path / name, GENEROUS[name]))
    np.testing.assert_allclose(cloud.points, [[1, 2, 3], [4, 5, 6]], rtol=1e-6)


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_six_columns_without_names_are_taken_with_a_warning_unless_they_are_normals(tmp_path, suffix):
    content = {"csv": lines_of(",", BOTH[:, [3, 4, 5, 0, 1, 2]]), "npy": BOTH[:, [3, 4, 5, 0, 1, 2]]}
    with pytest.warns(UserWarning, match="the first 3 of 6 columns without names are taken for x, y and z"):
        cloud = read_cloud(write(tmp_path / f"a.{suffix}", content[suffix]))
    np.testing.assert_allclose(cloud.points, NORMALS, rtol=1e-6)


def test_colors_and_normals_of_other_programs(tmp_path):
    for name, colors in (("leica.pts", [[10, 20, 30], [40, 50, 60]]), ("cloudcompare.txt", [[255, 0, 7], [0, 0, 1]])):
        cloud = read_cloud(write(tmp_path / name, GENEROUS[name]), features=["colors"])
        np.testing.assert_allclose(cloud.features, np.array(colors) / 255, rtol=1e-6)
    packed = np.rec.fromarrays([*POINTS.T.astype("<f4"), np.full(COUNT, 0x0A141E, "<u4").view("<f4")])
    header = pcd("binary", "x y z rgb", "4 4 4 4", "1 1 1 1")
    cloud = read_cloud(write(tmp_path / "a.pcd", header + packed.tobytes()), features=["colors"])
    np.testing.assert_allclose(cloud.features[0], np.array([10, 20, 30]) / 255, rtol=1e-6)
    for name in ("normals.xyzn", "alone.obj"):
        cloud = read_cloud(write(tmp_path / name, GENEROUS[name]), normals=True)
        np.testing.assert_allclose(cloud.normals, [[0, 0, 1], [0, 1, 0]])
    cloud = read_cloud(tmp_path / "alone.obj", features=["colors"])
    np.testing.assert_allclose(cloud.features, [[0.5, 0, 1], [0, 1, 0]])


def test_digits_of_pcd_text_are_kept_and_map_coordinates_moved(tmp_path):
    """Type F 4 says what a binary file has; text of UTM coordinates has more digits than float32."""
    content = (
        pcd("ascii").replace(b"217", b"3") + b"500000.125 5000000.25 3\n500000.375 5000000.5 4\n500000 5000000 3\n"
    )
    cloud = read_cloud(write(tmp_path / "a.pcd", content))
    moved = cloud.points + np.array(cloud.corner)
    assert moved.tolist() == [[500000.125, 5000000.25, 3], [500000.375, 5000000.5, 4], [500000, 5000000, 3]]


@pytest.mark.parametrize("suffix", ["csv", "npy", "txt"])
def test_a_first_column_that_counts_the_points_is_not_taken_for_x(tmp_path, suffix):
    table = np.column_stack([np.arange(1, COUNT + 1), POINTS])
    path = write(tmp_path / f"a.{suffix}", table if suffix == "npy" else lines_of(",", table))
    with pytest.warns(UserWarning, match="a first column that counts the points is not taken for x"):
        cloud = read_cloud(path)
    np.testing.assert_allclose(cloud.points, POINTS, rtol=1e-6)
    write(path, table[3:] if suffix == "npy" else lines_of(",", table[3:]))
    np.testing.assert_allclose(read_cloud(path).points[:, 0], np.arange(4, COUNT + 1))


def test_map_coordinates_in_float32_are_moved(tmp_path):
    """As terrain in the Point Cloud Library's data, 124 m long in steps of half a metre."""
    coarse = (POINTS * [15, 15, 5] + [5e5, 5.4e6, 100]).astype(np.float32)
    cloud = read_cloud(write(tmp_path / "a.npy", coarse))
    np.testing.assert_array_equal(cloud.points + np.array(cloud.corner), coarse.astype(np.float64))
    assert np.abs(cloud.points).max() < 1000


def test_degrees_with_heights_in_metres_are_reported(tmp_path):
    degrees = POINTS * [1e-4, 1e-4, 10] + [8.5, 47.4, 400]
    with pytest.warns(UserWarning, match="x and y look like degrees, and z like metres"):
        read_cloud(write(tmp_path / "a.npy", degrees))
    read_cloud(write(tmp_path / "a.npy", POINTS * [0.1, 0.1, 10]))


@pytest.mark.parametrize("name", ["a.npy", "a.pcd", "a.ply", "a.txt"])
def test_points_without_a_position_are_left_out_with_one_line(tmp_path, name):
    """As organized clouds of depth cameras have them."""
    points = POINTS.astype(np.float32)
    points[[3, 77]] = np.nan
    content = {
        "a.npy": points,
        "a.pcd": pcd("binary") + points.tobytes(),
        "a.ply": HEAD.replace(b"2", str(COUNT).encode()) + AXES + points.tobytes(),
        "a.txt": lines_of(" ", points),
    }[name]
    path = write(tmp_path / name, content)
    with pytest.warns(UserWarning, match=f"2 of {COUNT} points have no position and were left out"):
        cloud = read_cloud(path)
    np.testing.assert_array_equal(cloud.points, points[np.isfinite(points).all(axis=1)])


WITH_COUNTS = [name for name in FILES if not name.lower().endswith((".xyz", ".txt", ".npz"))]


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_files_that_are_cut_off_are_refused_before_they_are_read(tmp_path, name):
    path = write(tmp_path / name, FILES[name])
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"\n", 0, -1)] if b"text" in name.encode() else content[:-1])
    with pytest.raises(CloudError, match=f"{name}.*(cut off|damaged)"):
        read_cloud(path)


COUNTED = ["double.npy", "little.ply", "text.ply", "padded.pcd", "text.pcd", "open3d_packed.pcd"]


@pytest.mark.parametrize("name", COUNTED)
def test_zeros_after_the_data_are_padding_and_anything_else_is_reported(tmp_path, name):
    """Older versions of the Point Cloud Library end binary files with a page of zeros."""
    path = write(tmp_path / name, FILES[name])
    content = path.read_bytes()
    warned = rf"{name}: has [\d,]+ \w+ more than its header says"
    if "text" not in name:
        path.write_bytes(content + bytes(4096) + b"\r\n")
        assert len(read_cloud(path).points) == COUNT
    path.write_bytes(content + b"\n7 7\n" if name != "text.pcd" else content + b"\n1 1 2 3 1 1 1\n")
    with pytest.warns(UserWarning, match=warned):
        assert len(read_cloud(path).points) == COUNT
    if name != "double.npy":
        path.write_bytes(content.replace(b"217", b"216"))
        with pytest.warns(UserWarning, match=warned):
            assert len(read_cloud(path).points) == COUNT - 1
        path.write_bytes(content.replace(b"217", b"218"))
        with pytest.raises(CloudError, match=rf"{name}: .*(cut off|damaged)"):
            read_cloud(path)


def test_an_invalid_number_is_named_with_its_point(tmp_path):
    broken = BOTH.copy()
    broken[123, 4] = np.inf
    with pytest.raises(CloudError, match=r"a.npy: point 123 has a number that is not finite, \[.*inf.*leave it out"):
        read_cloud(write(tmp_path / "a.npy", broken), normals=True)


SCANNED = 120_000
UTM = np.array([500_000.0, 5_000_000.0, 300.0])
SCAN = UTM + np.round(RNG.random((SCANNED, 3)) * [50, 40, 30], 3)
FIELDS = {"intensity": 65_536, "return_number": 6, "classification": 20, "red": 65_536, "green": 99, "blue": 9}
FIELDS = {name: RNG.integers(0, most, SCANNED) for name, most in FIELDS.items()}


def las(path: Path, point_format: int = 3, count: int = SCANNED) -> Path:
    header = laspy.LasHeader(point_format=point_format, version="1.4" if point_format > 5 else "1.2")
    header.scales, header.offsets = [0.001] * 3, UTM
    header.add_extra_dim(laspy.ExtraBytesParams("height", np.float32))
    header.add_extra_dim(laspy.ExtraBytesParams("spread", "2f8"))
    data = laspy.LasData(header)
    data.x, data.y, data.z = SCAN[:count].T
    for name, values in FIELDS.items():
        data[name] = values[:count]
    data.height = SCAN[:count, 2]
    data.spread = SCAN[:count, :2]
    data.write(path)
    return path


@pytest.mark.parametrize("point_format", [3, 7])
@pytest.mark.parametrize("name", ["a.las", "a.LAZ"])
def test_fields_of_las_files_by_name(tmp_path, name, point_format):
    path = las(tmp_path / name, point_format)
    features = ["colors", "intensity", "return_number", "height", "spread"]
    wanted = [FIELDS[color] / 65535 for color in ("red", "green", "blue")]
    wanted += [FIELDS["intensity"] / 65535, FIELDS["return_number"], SCAN[:, 2], *SCAN[:, :2].T]
    rows = np.column_stack([SCAN, *wanted])
    cloud = read_cloud(path, features=features)
    np.testing.assert_allclose(cloud.features, rows[:, 3:], rtol=1e-6)
    np.testing.assert_allclose(cloud.points + np.array(cloud.corner), SCAN, atol=1e-5, rtol=0)
    with pytest.raises(CloudError, match=r"a\.(las|LAZ): lacks the feature 'rough'.*x, y, z, intensity, return_number"):
        read_cloud(path, features=["rough"])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9999])
@pytest.mark.parametrize("name", ["a.las", "a.laz"])
def test_las_files_that_are_cut_off_are_refused_before_they_are_read(tmp_path, name, share):
    content = las(tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CloudError, match=rf"{name}: .*(cut off|damaged)"):
        read_cloud(tmp_path / name)


def changed(path: Path, place: int, content: bytes) -> Path:
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + content + whole[place + len(content) :])
    return path


@pytest.mark.parametrize("place", [100, 243, "chunks"])
def test_counts_that_no_las_file_can_have_are_refused_at_once(tmp_path, place):
    """laspy would read such records for hours, and lazrs end the process."""
    path = las(tmp_path / "a.laz", 7, count=3000)
    if place == "chunks":
        points = int.from_bytes(path.read_bytes()[96:100], "little")
        place = int.from_bytes(path.read_bytes()[points : points + 8], "little") + 4
    with pytest.raises(CloudError, match=r"a\.laz.*more records than fit"):
        read_cloud(changed(path, place, b"\xff" * 4))


@pytest.mark.parametrize(
    ("place", "content", "words"),
    [(107, b"\t", "90 points more"), (107, b"\x64", "100 points, and 99"), (131, bytes(8), "scale of 0")],
)
def test_a_las_header_that_contradicts_its_points_is_refused(tmp_path, place, content, words):
    path = changed(las(tmp_path / "a.las", count=99), place, content)
    with pytest.raises(CloudError, match=rf"a\.las: .*{words}"):
        read_cloud(path)


def test_padding_of_las_files_and_old_laz(tmp_path):
    path = las(tmp_path / "a.las", count=99)
    content = path.read_bytes()
    path.write_bytes(content + bytes(4096))
    assert len(read_cloud(path).points) == 99
    path.write_bytes(content + b"made by hand")
    with pytest.warns(UserWarning, match=r"a\.las: has 12 bytes more"):
        assert len(read_cloud(path).points) == 99
    packed = las(tmp_path / "b.laz", count=99)
    compressor = packed.read_bytes().index(b"\2\0\0\0\2\2")
    with pytest.raises(CloudError, match=r"b\.laz: .*one chunk by LASzip 1"):
        read_cloud(changed(packed, compressor, b"\1"))


def test_a_panic_of_a_library_in_rust_is_an_error_with_the_files_name(tmp_path):
    class PanicException(BaseException):
        pass

    with pytest.raises(CloudError, match=r"a\.laz: is damaged"), naming(Path("a.laz"), CloudError):
        raise PanicException
    with pytest.raises(KeyboardInterrupt), naming(Path("a.laz"), CloudError):
        raise KeyboardInterrupt


def test_las_colors_of_eight_bits(tmp_path):
    data = laspy.read(las(tmp_path / "a.las", count=99))
    colors = np.column_stack([data[name] % 256 for name in ("red", "green", "blue")])
    data.red, data.green, data.blue = colors.T
    data.write(tmp_path / "a.las")
    np.testing.assert_allclose(read_cloud(tmp_path / "a.las", features=["colors"]).features, colors / 255, rtol=1e-6)
