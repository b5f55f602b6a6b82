"""Pipes, devices, sockets, folders and huge files in place of a file: every command refuses them at once."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import fail

from pointset.errors import PointsetError
from pointset.tasks.images import read_image
from pointset.zoo.names import load_files

COMMANDS = """
classify BAD.off --model classes
classify BAD.npy --model classes
classify cube.npy --model BAD.pointset
classify glb/a.gltf --model classes
attend BAD.off --model classes
attend BAD.ply --model classes
embed BAD.obj --model classes -o rows.npz
find BAD.off clouds --model classes
find cube.npy BAD.npz
find cube.npy BAD.csv
compare BAD.toml
train rff-max --data BAD.data --run new
evaluate --model BAD.pointset
evaluate --model broken
evaluate --model classes --data BAD.data
export --model BAD.pointset -o a.onnx
judge BAD.csv
judge BAD.parquet
judge BAD.npz
judge BAD.json
data show BAD.data
data build BAD.data
"""
"""Commands with BAD for the name of the file without its suffix."""
BESIDE = {"glb/a.gltf": "glb/BAD.bin", "broken": "broken/run.json"}
"""The bad file that belongs to another file or a folder."""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(path))


def huge(path: Path) -> None:
    """A sparse file needs no disk space."""
    path.touch()
    os.truncate(path, 5 << 30)


@pytest.fixture
def work(clouds_folder, plain_run, tmp_path, monkeypatch) -> None:
    """A folder with shapes of several kinds, and a model."""
    monkeypatch.chdir(tmp_path)
    Path("classes").symlink_to(plain_run)
    shutil.copytree(clouds_folder, "clouds")
    np.save("cube.npy", np.random.default_rng(0).uniform(size=(40, 3)))
    for name in ("glb", "broken"):
        Path(name).mkdir()
    buffer = {"uri": "BAD.bin", "byteLength": 9}
    Path("glb/a.gltf").write_text(json.dumps({"asset": {"version": "2.0"}, "buffers": [buffer]}))


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.filterwarnings("ignore:.* files usually have Y up")
@pytest.mark.parametrize("line", COMMANDS.strip().splitlines())
@pytest.mark.parametrize("make", [pipe, device, listening, Path.mkdir, huge])
def test_every_command_refuses_them(make: Callable, line: str, work: None, capsys) -> None:
    bad = next(BESIDE.get(word, word) for word in line.split() if word in BESIDE or word.startswith("BAD"))
    make(Path(bad))
    assert Path(bad).stem in fail(capsys, *line.split())


@pytest.mark.parametrize("make", [pipe, device, listening, Path.mkdir, huge])
def test_functions_that_open_files_refuse_them(make: Callable, tmp_path: Path, monkeypatch) -> None:
    make(tmp_path / "BAD")
    monkeypatch.setenv("POINTSET_PARTS", str(tmp_path / "BAD"))
    for function in (partial(read_image, side=8), lambda _: load_files()):
        with pytest.raises(PointsetError, match=r"BAD|/dev/zero"):
            function(tmp_path / "BAD")
