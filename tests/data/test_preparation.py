"""One preparation: one file has one set of points and one probability wherever it is given, and nothing jumps."""

import base64
import builtins
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import laspy
import numpy as np
import pytest
import torch
import trimesh
from command_line import asked, succeed
from toy import write_furniture

import pointset
from pointset.data import sample_points
from pointset.data.axes import rotate_up
from pointset.data.local_features import WIDTHS
from pointset.data.options import CLOUD_POINTS, Preparation
from pointset.data.preparation import prepare
from pointset.data.readers.off import write_off
from pointset.data.reload import load_like
from pointset.data.shapes10.build import make_shape
from pointset.errors import PointsetError
from pointset.evaluation.shape_files import Guess, classify_files, in_folders

pytestmark = pytest.mark.filterwarnings(
    "ignore:of clouds with more points", "ignore:.*usually have Y up", "ignore:.*give inaccurate local features"
)


@pytest.fixture(scope="module")
def chair():
    return make_shape("chair", "test", 0)


@pytest.fixture(scope="module", params=[*WIDTHS])
def run(request, tmp_path_factory):
    """A run on points of chairs and lamps, with and without neighbourhoods; 100 points of caches of 300."""
    folder = tmp_path_factory.mktemp("prepared")
    write_furniture(folder / "data", 3)
    sets = pointset.load_dataset(folder / "data", points=100, cache_points=300, progress=False)
    model = pointset.create_model("rff-max", classes=2, dim=8, local_features=request.param)
    pointset.fit(model, sets, pointset.Recipe(epochs=1), run=folder / "run", progress=False)
    return folder / "run"


def write(shape: Any, path: Path) -> Path:
    points = sample_points(shape, 400, seed=5)
    if path.suffix == ".off":
        write_off(path, shape)
    elif path.suffix == ".npy":
        np.save(path, points)
    else:
        turned = points[:, [0, 2, 1]] * [1, 1, -1]  # OBJ has Y up
        faces = [f"f {i} {i + 1} {i + 2}" for i in range(1, 398, 3)]
        path.write_text("\n".join([*(f"v {x} {y} {z}" for x, y, z in turned), *faces]))
    return path


@pytest.mark.parametrize("suffix", [".off", ".npy", ".obj"])
def test_one_file_has_one_probability(run, chair, suffix, tmp_path, capsys):
    file, model = write(chair, tmp_path / f"chair{suffix}"), pointset.load_model(run)
    with torch.no_grad():
        logits = model(model.prepare(file).points[None])
    expected = float(logits.softmax(dim=1).max())
    classified = asked(capsys, "classify", file, "--model", run)["predictions"][0]["classes"][0]["probability"]
    page = tmp_path / "page.html"
    attended = asked(capsys, "attend", file, "--model", run, "-o", page, "--live")["confidence"]
    assert [classified, attended] == pytest.approx([expected] * 2, abs=1e-5)
    for given in (file, str(file), [file]):
        assert float(model.predict_proba(given).max()) == pytest.approx(expected, abs=1e-5)
    succeed(capsys, "embed", file, "--model", run, "-o", tmp_path / "rows.npz")
    row = np.load(tmp_path / "rows.npz")["embedding"]
    np.testing.assert_allclose(row, model.embed([file]), atol=1e-5)
    content = json.loads(re.search(r'<script id="data" type="application/json">(.*)</script>', page.read_text())[1])  # type: ignore[index]
    assert (content["models"][0]["points"], content["models"][0]["classes"]) == (100, ["chair", "lamp"])
    assert (content["shapes"][0]["name"], len(base64.b64decode(content["shapes"][0]["points"]))) == (file.name, 600)


def test_an_array_is_prepared_as_its_file(run, chair, tmp_path):
    file, model = write(chair, tmp_path / "chair.npy"), pointset.load_model(run)
    points = np.load(file)
    for given in (points, points.astype(np.float64) * 7 + 3, torch.from_numpy(points)):
        found, expected = model.prepare(given).points, model.prepare(file).points
        assert torch.allclose(found[:, :3], expected[:, :3], atol=1e-4)
        # Local features are in float16, where rounding may choose the next number.
        assert torch.allclose(found[:, 3:], expected[:, 3:], atol=1e-4, rtol=2**-10)
    assert model.prepare(file).points.shape == (100, model.widths[-1])
    assert model.prepare(points[:30]).points.shape == (30, model.widths[-1])
    np.testing.assert_allclose(model.predict_proba(points), model.predict_proba([file]), atol=1e-5)


@pytest.mark.parametrize("count", [99, 100, 101, CLOUD_POINTS - 1, CLOUD_POINTS, CLOUD_POINTS + 1])
def test_nothing_jumps_between_two_numbers_of_points(run, chair, count):
    model = pointset.load_model(run)
    points = sample_points(chair, CLOUD_POINTS + 1, seed=0)[:count]
    near = model.predict_proba(sample_points(chair, CLOUD_POINTS + 1, seed=0)[: count + 1])
    assert abs(model.predict_proba(points) - near).max() < 0.1


def test_neighbourhoods_are_those_of_the_cloud_and_not_of_the_set(chair):
    """100 drawn points know what lay between them: training and evaluation sets as single shapes."""
    points = sample_points(chair, 500, seed=0)
    sets = pointset.from_arrays(points[None].repeat(2, 0), [0, 1], points=100).with_local_features("upright")
    preparation = sets.preparation
    assert (preparation.points, preparation.local_features) == (100, "upright")
    many = Preparation(points=500, normalize=preparation.normalize, local_features="upright")
    many = prepare(points, many).points
    drawn = sets.draw([0], torch.Generator().manual_seed(0), 50)[0]
    for row in torch.cat([drawn[:, 3:], sets.points[0][:, 3:]]):
        assert (many[:, 3:] - row).abs().amax(dim=1).min() < 1e-3


def test_a_cloud_without_what_the_model_needs_is_refused():
    cloud = pointset.data.Cloud(np.random.default_rng(0).random((20, 3), np.float32))
    with pytest.raises(PointsetError, match="the cloud has no normals, which the model needs"):
        prepare(cloud, Preparation(features=("normals",), inputs=6))


def test_a_preparation_is_saved_and_read_again(run):
    model = pointset.load_model(run)
    description = model.description
    saved = description["data"]["preparation"]
    assert Preparation.from_dict(saved) == model.preparation
    assert saved["local_features"] == model.local_features


def test_each_file_is_opened_once_to_be_classified(tmp_path, monkeypatch):
    box, points = trimesh.creation.box(), np.random.default_rng(0).normal(size=(40, 3))
    for suffix in ("off", "obj", "ply", "stl", "glb", "3mf"):
        box.export(tmp_path / f"mesh_{suffix}.{suffix}")
    trimesh.PointCloud(points).export(tmp_path / "cloud.PLY")
    np.save(tmp_path / "a.npy", points)
    np.savez(tmp_path / "a.npz", points)
    np.savetxt(tmp_path / "a.xyz", points)
    las = laspy.create()
    las.x, las.y, las.z = points.T
    las.write(tmp_path / "a.laz")
    (tmp_path / "a.pcd").write_text(
        "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH 2\nHEIGHT 1\nDATA ascii\n0 0 0\n1 1 1\n"
    )
    model = pointset.create_model("rff-max", classes=2, dim=8)
    model.classes, model.preparation = ["a", "b"], Preparation(points=16)
    shapes = in_folders([tmp_path])
    opened, usual_open = Counter[str](), open

    def counted_open(file: Any, *how: Any, **options: Any) -> Any:
        opened[str(file)] += 1
        return usual_open(file, *how, **options)

    for module in (builtins, io):  # pathlib has io.open
        monkeypatch.setattr(module, "open", counted_open)
    guesses = [*classify_files(model, shapes)]
    assert [guess.name for guess in guesses if isinstance(guess, Guess)] == [shape.name for shape in shapes]
    assert [opened[str(shape.path)] for shape in shapes] == [1] * 12


def write_lying(tmp_path: Path, up: str) -> tuple[Path, Path]:
    """Two folders of the same clouds, with Z up and with another axis up."""
    rng, folders = np.random.default_rng(0), (tmp_path / "upright", tmp_path / "lying")
    for row in range(8):
        cloud = rng.normal(size=(40, 3)) * [1, 2, 5]
        for now, folder in zip(("z", up), folders, strict=True):
            file = folder / f"class{row % 2}" / ("test" if row > 5 else "train") / f"{row}.npy"
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, rotate_up(cloud, "z", now))
    return folders


@pytest.mark.parametrize("up", ["x", "-x", "-y", "-z"])
def test_files_with_any_axis_up_give_the_points_of_those_with_z_up(up, tmp_path):
    folders = write_lying(tmp_path, up)
    upright, lying = (
        pointset.load_dataset(folder, points=30, up=now, progress=False)
        for folder, now in zip(folders, ("z", up), strict=True)
    )
    assert torch.equal(lying.points, upright.points)
    assert (lying.up, lying.preparation.up, lying.preparation.files_up) == ("z", "z", up)
    assert torch.equal(load_like(lying.describe(), "train").points, upright.points)
    first, second = (prepare(folder / "class0/train/0.npy", upright.preparation, up="z") for folder in folders)
    assert not torch.equal(first.points, second.points)
    assert torch.equal(first.points, prepare(folders[1] / "class0/train/0.npy", lying.preparation).points)


def test_a_run_knows_the_upward_axis_of_its_files(tmp_path, capsys):
    upright, lying = write_lying(tmp_path, "-x")
    run, options = tmp_path / "run", ("--points", 30, "--epochs", 1, "--dim", 8, "--up=-x")
    succeed(capsys, "train", "rff-max", "--data", lying, "--run", run, *options)
    found = asked(capsys, "evaluate", "--model", run)
    other = asked(capsys, "evaluate", "--model", run, "--data", upright, "--up", "z")
    assert found["loss"] == other["loss"]
    shown = asked(capsys, "data", "show", lying, "--up=-x", "-o", tmp_path / "shapes.png")
    assert (shown["up"], shown["up_assumed"]) == ("-x", False)
