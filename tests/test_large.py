"""The benchmark of many shapes: valid meshes, and a row of the table for each size."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from large import app, exponent
from small_meshes import PROFILES, write_meshes
from watched import room, watch

from pointset.data.catalogue.folders import list_folder
from pointset.data.readers.mesh_reader import read_mesh


def test_meshes_have_all_classes_and_many_begin_as_few_do(tmp_path: Path) -> None:
    write_meshes(tmp_path / "few", 25)
    write_meshes(tmp_path / "many", 50)
    train, test = (list_folder(tmp_path / "few", split) for split in ("train", "test"))
    assert (len(train.shapes), len(test.shapes)) == (20, 5)
    assert train.classes == test.classes == sorted(PROFILES)
    for shape in train.shapes + test.shapes:
        assert shape.path.read_bytes() == (tmp_path / "many" / shape.name).read_bytes()
        mesh = read_mesh(shape.path)
        assert mesh.faces.shape == (96, 3)
        assert (np.ptp(mesh.vertices, axis=0) > 0.3).all()
    box = read_mesh(tmp_path / "few" / "box" / "train" / "box_00000001.off").vertices
    assert np.isclose(np.abs(box[12:24, :2]) / np.abs(box[12:24, :2]).max(axis=0), 1).any(axis=1).all()


def test_a_command_is_traced_with_what_it_starts(tmp_path: Path) -> None:
    child = "import time; held = bytearray(200_000_000); time.sleep(0.5)"
    parent = f"import subprocess, sys; print(7); subprocess.run([sys.executable, '-c', {child!r}]); sys.exit(3)"
    done = watch([sys.executable, "-c", parent], tmp_path, {})
    assert (done.status, done.output.strip()) == (3, "7")
    assert done.seconds > 0.5
    assert done.peak_bytes > 200_000_000


def test_room_is_that_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one").write_bytes(bytes(1_000_000))
    (tmp_path / "a" / "b" / "two").write_bytes(bytes(500_000))
    found = room(tmp_path)
    assert (found["files"], found["bytes_mb"]) == (2, 1.5)


def test_an_exponent_is_the_slope_on_log_axes() -> None:
    assert exponent([10, 1000], [3.0, 3.0e4]) == pytest.approx(2)


@pytest.mark.slow
def test_every_step_is_measured_and_a_killed_worker_changes_no_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[dask]'")
    sizes = ["--sizes", "50", "100", "--pool-points", "32", "--points", "8", "--dim", "8"]
    app([*sizes, "--folder", str(tmp_path), "--out", str(tmp_path / "rows.json")], result_action="return_value")
    first, last = json.loads((tmp_path / "rows.json").read_text())
    assert (first["shapes"], last["shapes"]) == (50, 100)
    assert first["open"]["opened"] == 50
    assert last["meshes"]["files"] == 100
    assert last["cache"]["files"] == first["cache"]["files"] == 9
    assert all(last[step]["peak_mb"] > 10 for step in ("build", "open", "train"))
    assert last["cluster"]["alike"] == last["cluster"]["files"] == 6
    assert last["cluster"]["runs"][-1]["status"] == 0
    assert "| building, s " in capsys.readouterr().out
