"""Run folders: damage is named, two processes never share one, a description without a run is no run."""

import json
import multiprocessing
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

import pointset
from pointset.errors import PointsetError
from pointset.training.checkpoints import Checkpoint, RunFolder, load_run
from pointset.training.recipe import Recipe

SHORT = Recipe(epochs=2, batch_size=16)


@pytest.fixture(scope="module")
def train(clouds_folder):
    return pointset.load_dataset(clouds_folder, "train", 24)


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    pointset.fit(small(), train, SHORT, run=folder)
    return folder


def small(seed: int = 0) -> nn.Module:
    return pointset.create_model("isab4-pma", classes=3, dim=16, seed=seed)


def begun(folder: Path, epochs: int = 1) -> RunFolder:
    """A run with a checkpoint after some epochs."""
    model, run = small(), RunFolder(folder)
    optimizer = torch.optim.AdamW(model.parameters())
    run.claim({"model": {}, "data": {}, "recipe": {}, "seed": 0})
    history = [{"epoch": epoch + 1} for epoch in range(epochs)]
    run.save(Checkpoint(model.state_dict(), optimizer.state_dict(), history, model.state_dict()))
    return run


def damage(file: Path, how: str) -> None:
    if how == "truncated":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["truncated", "empty"])
@pytest.mark.parametrize("name", ["model.safetensors", "run.json"])
def test_a_damaged_finished_run_is_named(name, how, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    damage(folder / name, how)
    with pytest.raises(PointsetError, match=name):
        load_run(folder)


@pytest.mark.parametrize("how", ["truncated", "empty", "missing"])
def test_a_damaged_history_is_named(how, finished, train, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    damage(folder / "history.jsonl", how)
    if how == "truncated":  # in mid-line, wherever half of the file is
        (folder / "history.jsonl").write_text('{"epoch": 1}\n{"epo')
    with pytest.raises(PointsetError, match=r"history\.jsonl is damaged"):
        pointset.fit(small(), train, SHORT, run=folder)


@pytest.mark.parametrize("how", ["truncated", "empty"])
@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.pt", "history.json", "best.safetensors"])
def test_a_damaged_checkpoint_is_named(name, how, tmp_path):
    run = begun(tmp_path)
    damage(tmp_path / "checkpoint-0001" / name, how)
    with pytest.raises(PointsetError, match=f"checkpoint-0001/{name} is"):
        run.load()


def test_weights_of_another_model_are_refused(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"dim": 16', '"dim": 32'))
    with pytest.raises(PointsetError, match="does not fit the model"):
        load_run(folder)


@pytest.mark.parametrize("classes", ['["ball", "box"]', "3", "null"])
def test_another_list_of_classes_is_refused(classes, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    about = json.loads((folder / "run.json").read_text())
    about["data"]["classes"] = json.loads(classes)
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(PointsetError, match="does not name the 3 classes that its model tells apart"):
        load_run(folder)


def test_the_newest_checkpoint_is_the_one_of_the_highest_number(tmp_path):
    run = begun(tmp_path, epochs=2)
    for name in ("checkpoint-10000", "checkpoint-9999", "checkpoint-of-mine"):
        shutil.copytree(tmp_path / "checkpoint-0002", tmp_path / name)
    (tmp_path / "checkpoint-10000" / "history.json").write_text('[{"epoch": 10000}]')
    assert run.load().history == [{"epoch": 10000}]


@pytest.mark.slow
def test_a_description_without_a_finished_epoch_is_no_run(train, tmp_path):
    (tmp_path / "run.json").write_text('{"seed": 7}')
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


def hold(folder: Path, held, leave) -> None:
    with RunFolder(folder).locked():
        held.set()
        leave.wait(30)


@pytest.mark.slow
def test_a_folder_that_another_process_trains_in_is_refused(train, tmp_path):
    context = multiprocessing.get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, leave))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(PointsetError, match="another process is training in"):
            pointset.fit(small(), train, SHORT, run=tmp_path)
    finally:
        leave.set()
        other.join()
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_number_that_is_no_seed_is_refused_before_anything_is_written(seed, train, tmp_path):
    with pytest.raises(PointsetError, match="seed must be"):
        pointset.fit(small(), train, SHORT, seed=seed, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
