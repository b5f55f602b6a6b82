"""Small files that readers once took for something else; see the README of their folder, beside the real data."""

import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import pointset
from pointset import PointsetError
from pointset.data import Mesh, read_mesh
from pointset.data.axes import upright_mesh
from pointset.data.catalogue.folders import list_folder
from pointset.data.readers.reading import read_shape

RIGHT: dict[str, tuple[int, str]] = {
    "06-trailing-bytes/longx.ply": (8, "has 7 bytes more"),
    "10-padded-by-last-point/slab_0.npy": (256, ""),
    "11-stl-header/11count0.stl": (2, "declares no triangle"),
    "11-stl-header/11solidfacet.stl": (2, ""),
    "11-stl-header/11tail.stl": (2, "has 28 bytes more"),
    "12-ascii-stl/12commented.stl": (1, ""),
    "12-ascii-stl/12longheader.stl": (1, ""),
    "angstrom_comment.txt": (6, ""),
    "angstrom_name.csv": (6, ""),
    "exp_a.stl": (1, ""),
    "exp_d.off": (1, "1 of 2 faces"),
    "exp_i.ply": (1, ""),
    "exp_pv.csv": (2, ""),
    "exp_r.obj": (2, "1 of 2 faces"),
    "half_controller.dae": (24, ""),
    "off_zero_area.off": (8, "2 of 6 faces"),
    "pcl_page_padding.pcd": (300, ""),
    "quantised_two_squares.gltf": (4, ""),
    "records.npz": (6, ""),
    "sep.csv": (6, ""),
    "umlaut_name.csv": (6, ""),
}
"""Triangles or points, and words of the warning."""
REFUSED = {
    "12-ascii-stl/12four.stl": "line 8: expected three vertices",
    "12-ascii-stl/12two.stl": "line 13: expected three vertices",
    "20-decimal-comma/20germancomma.csv": "decimal commas",
    "21-pickled/21batch.npz": "save each cloud as its own file",
    "21-pickled/21obj.npy": "pickle runs any code",
    "21-pickled/21ragged.npz": "pickle runs any code",
    "22-degenerate/22only.off": "has no area",
    "22-degenerate/22onlyface.ply": "has no area",
    "26-empty-ply/26empty.ply": "found no point",
    "countless.las": "points more than its header says",
    "de_comma_nohead_xyz.csv": "decimal commas",
    "old_laszip.laz": "one chunk by LASzip 1",
    "rows_1d.npz": "expected one cloud",
    "rows_nan_3_names.npz": "expected one cloud",
}


@pytest.fixture(scope="session")
def odd_files(real_data: Path) -> Path:
    folder = real_data.parent / "odd_files"
    if not folder.is_dir():
        pytest.skip(f"no odd files at {folder}")
    return folder


@pytest.mark.parametrize("name", [*RIGHT, *REFUSED])
def test_an_odd_file_is_read_right_or_refused_in_one_line(odd_files, name):
    path = odd_files / name
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name in REFUSED:
            with pytest.raises(PointsetError, match=re.escape(REFUSED[name])) as refusal:
                read_shape(path)
            assert str(path) in str(refusal.value)
            assert "\n" not in str(refusal.value)
            return
        count, words = RIGHT[name]
        shape = read_shape(path)
    assert len(shape.faces if isinstance(shape, Mesh) else shape.points) == count
    assert [str(warning.message) for warning in caught if words in str(warning.message)][:1] or not words
    assert len(caught) == bool(words)


def test_the_upward_axis_of_a_dae_file_is_read(odd_files):
    mesh = read_mesh(odd_files / "dae_y_up.dae")
    assert mesh.up == "y"
    np.testing.assert_array_equal(upright_mesh(mesh).vertices[:, 2], mesh.vertices[:, 1])


def test_a_far_mesh_keeps_its_form(odd_files):
    points = pointset.data.sample_points(read_mesh(odd_files / "19-utm-mesh/utm200.off"), 4000, seed=0)
    assert len(set(points[:, 1].tolist())) > 400
    assert len(read_mesh(odd_files / "22-degenerate/27meshD.off").faces) == 12


def test_two_squares_stand_five_apart(odd_files):
    mesh = read_mesh(odd_files / "quantised_two_squares.gltf")
    assert mesh.vertices.max(0).tolist() == pytest.approx([6, 1, 0])


def test_odd_folders(odd_files, tmp_path):
    with pytest.warns(UserWarning, match="files that are skipped: 10 files"):
        shapes = [list_folder(odd_files / "E10-same-stem/z10").of(split) for split in ("train", "test")]
    assert sum(map(len, shapes)) == 10
    for folder in sorted((odd_files / "E12-split-names").glob("z*")):
        assert list_folder(folder).classes == ["a", "b"]
    with pytest.warns(UserWarning, match=r"index\.csv|labels\.csv"):
        list_folder(odd_files / "E14-index/z14")
    copy = shutil.copytree(odd_files / "E15-own-output/z35flat", tmp_path / "flat")
    with pytest.warns(UserWarning, match=r"1 file of text beside shapes of other formats .*'predictions.csv'"):
        assert len(pointset.data.catalogue.folders.list_shapes(copy)) == 5
