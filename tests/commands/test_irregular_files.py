"""Pipes, devices, sockets, folders and huge files in place of a file: every command refuses them at once."""

import csv
import json
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import fail
from toy import train_run, write_labelled

import pointset
from pointset.cli import main
from pointset.errors import PointsetError
from pointset.explain.files import load_maps
from pointset.tasks.images import read_image
from pointset.zoo.names import load_files

COMMANDS = """
classify BAD.off --model classes
classify BAD.npy --model classes
classify cube.npy --model BAD.pointset
classify glb/a.gltf --model classes
predict BAD.ply --model numbers
predict cube.npy --model BAD.pointset
segment BAD.npy --model points
segment BAD.off --model points
attend BAD.off --model classes
attend BAD.ply --model classes
embed BAD.obj --model classes -o rows.npz
find BAD.off solids --model classes
find cube.npy BAD.npz
find cube.npy BAD.csv
compare BAD.toml
tune BAD.toml
task BAD.toml
train rff-max --data BAD.data --run new
train rff-max --data solids --target volume --targets BAD.csv --run new
train rff-max --data rooms --labels label --run new
evaluate --model BAD.pointset
evaluate --model broken
evaluate --model classes --data BAD.data
export --model BAD.pointset -o a.onnx
audit BAD.pointset
judge BAD.csv
judge BAD.parquet
judge BAD.npz
judge BAD.json
data show BAD.data
data build BAD.data
"""
"""Commands with BAD for the name of the file without its suffix."""
BESIDE = {"glb/a.gltf": "glb/BAD.bin", "rooms": "rooms/labels.json", "broken": "broken/run.json"}
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


@pytest.fixture(scope="module")
def work(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of three kinds, and shapes of several."""
    folder, rng = tmp_path_factory.mktemp("work"), np.random.default_rng(0)
    train_run(folder / "classes", clouds_folder, "rff-max")
    sets = pointset.load_dataset(write_labelled(folder / "rooms"), "train", 16, labels="label", progress=False)
    recipe = pointset.Recipe(epochs=1)
    pointset.fit(pointset.create_segmenter("rff-max", 2, dim=8), sets, recipe, run=folder / "points", progress=False)
    rows = [["file", "volume"]]
    (folder / "solids").mkdir()
    for number in range(20):
        np.save(folder / "solids" / f"{number}.npy", rng.uniform(size=(32, 3)) * (number + 1))
        rows.append([f"{number}.npy", str(number)])
    with (folder / "solids" / "targets.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    words = f"train features-ridge --data {folder}/solids --target volume --points 16 --run {folder}/numbers"
    main(words.split())
    np.save(folder / "cube.npy", rng.uniform(size=(40, 3)))
    (folder / "glb").mkdir()
    (folder / "broken").mkdir()
    buffer = {"uri": "BAD.bin", "byteLength": 9}
    (folder / "glb/a.gltf").write_text(json.dumps({"asset": {"version": "2.0"}, "buffers": [buffer]}))
    return folder


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.filterwarnings("ignore:.* files usually have Y up")
@pytest.mark.parametrize("line", COMMANDS.strip().splitlines())
@pytest.mark.parametrize("make", [pipe, device, listening, Path.mkdir, huge])
def test_every_command_refuses_them(make: Callable, line: str, work: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(work)
    bad = next(BESIDE.get(word, word) for word in line.split() if word in BESIDE or word.startswith("BAD"))
    make(Path(bad))
    try:
        assert Path(bad).stem in fail(capsys, *line.split())
    finally:
        Path(bad).rmdir() if make == Path.mkdir else Path(bad).unlink()


@pytest.mark.parametrize("make", [pipe, device, listening, Path.mkdir, huge])
def test_functions_that_open_files_refuse_them(make: Callable, tmp_path: Path, monkeypatch) -> None:
    make(tmp_path / "BAD")
    monkeypatch.setenv("POINTSET_PARTS", str(tmp_path / "BAD"))
    for function in (load_maps, partial(read_image, side=8), lambda _: load_files()):
        with pytest.raises(PointsetError, match=r"BAD|/dev/zero"):
            function(tmp_path / "BAD")
