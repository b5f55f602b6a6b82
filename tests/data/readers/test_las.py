"""LAS and LAZ files, written by laspy: fields by name, pieces, large coordinates, labels, and damage."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data import read_cloud
from pointset.data.readers.clouds import CloudError

laspy = pytest.importorskip("laspy")
RNG = np.random.default_rng(0)
COUNT = 120_000
UTM = np.array([500_000.0, 5_000_000.0, 300.0])
POINTS = UTM + np.round(RNG.random((COUNT, 3)) * [50, 40, 30], 3)
FIELDS = {"intensity": 65_536, "return_number": 6, "classification": 20, "red": 65_536, "green": 99, "blue": 9}
FIELDS = {name: RNG.integers(0, most, COUNT) for name, most in FIELDS.items()}


def las(path: Path, point_format: int = 3, count: int = COUNT) -> Path:
    header = laspy.LasHeader(point_format=point_format, version="1.4" if point_format > 5 else "1.2")
    header.scales, header.offsets = [0.001] * 3, UTM
    header.add_extra_dim(laspy.ExtraBytesParams("height", np.float32))
    header.add_extra_dim(laspy.ExtraBytesParams("spread", "2f8"))
    data = laspy.LasData(header)
    data.x, data.y, data.z = POINTS[:count].T
    for name, values in FIELDS.items():
        data[name] = values[:count]
    data.height = POINTS[:count, 2]
    data.spread = POINTS[:count, :2]
    data.write(path)
    return path


@pytest.mark.parametrize("point_format", [3, 7])
@pytest.mark.parametrize("name", ["a.las", "a.LAZ"])
def test_fields_by_name(tmp_path: Path, name: str, point_format: int) -> None:
    path = las(tmp_path / name, point_format)
    features = ["colors", "intensity", "return_number", "height", "spread"]
    wanted = [FIELDS[color] / 65535 for color in ("red", "green", "blue")]
    wanted += [FIELDS["intensity"] / 65535, FIELDS["return_number"], POINTS[:, 2], *POINTS[:, :2].T]
    rows = np.column_stack([POINTS, *wanted])
    cloud = read_cloud(path, features=features)
    np.testing.assert_allclose(cloud.features, rows[:, 3:], rtol=1e-6)
    np.testing.assert_allclose(cloud.points + np.array(cloud.corner), POINTS, atol=1e-5, rtol=0)
    with pytest.raises(CloudError, match=r"a\.(las|LAZ): lacks the feature 'rough'.*x, y, z, intensity, return_number"):
        read_cloud(path, features=["rough"])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9999])
@pytest.mark.parametrize("name", ["a.las", "a.laz"])
def test_files_that_are_cut_off_are_refused_before_they_are_read(tmp_path: Path, name: str, share: float) -> None:
    content = las(tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CloudError, match=rf"{name}: .*(cut off|damaged)"):
        read_cloud(tmp_path / name)


@pytest.mark.parametrize("place", [100, 243, "chunks"])
def test_counts_that_no_file_can_have_are_refused_at_once(tmp_path: Path, place: int | str) -> None:
    """laspy would read such records for hours, and lazrs end the process."""
    path = las(tmp_path / "a.laz", 7, count=3000)
    content = bytearray(path.read_bytes())
    if place == "chunks":
        points = int.from_bytes(content[96:100], "little")
        place = int.from_bytes(content[points : points + 8], "little") + 4
    content[place : place + 4] = b"\xff" * 4
    path.write_bytes(content)
    with pytest.raises(CloudError, match=r"a\.laz.*more records than fit"):
        read_cloud(path)


@pytest.mark.parametrize(("place", "content", "words"), [(107, 9, "9 points, and 99"), (131, 0, "a scale of 0")])
def test_a_header_that_contradicts_the_points_is_refused(tmp_path: Path, place: int, content: int, words: str) -> None:
    path = las(tmp_path / "a.las", count=99)
    header = bytearray(path.read_bytes())
    header[place : place + (4 if content else 8)] = content.to_bytes(4 if content else 8, "little")
    path.write_bytes(header)
    with pytest.raises(CloudError, match=rf"a\.las: .*{words}"):
        read_cloud(path)


def test_colors_of_eight_bits(tmp_path: Path) -> None:
    data = laspy.read(las(tmp_path / "a.las", count=99))
    colors = np.column_stack([data[name] % 256 for name in ("red", "green", "blue")])
    data.red, data.green, data.blue = colors.T
    data.write(tmp_path / "a.las")
    np.testing.assert_allclose(read_cloud(tmp_path / "a.las", features=["colors"]).features, colors / 255, rtol=1e-6)
