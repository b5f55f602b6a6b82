"""Runs as folders and as one file: damage is named, processes never share one, and a file does no harm."""

import contextlib
import copy
import hashlib
import io
import json
import re
import shutil
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from command_line import asked, fail, succeed
from torch import nn
from toy import StopError, numbers, same_weights, small, stop_after, train_run

import pointset
from pointset import PointsetError, PointSets, Recipe, load_run, pack_run
from pointset.runs import records
from pointset.training.checkpoints import Checkpoint, RunFolder, describe_run
from pointset.training.loop import Training
from pointset.zoo.models import mix

SHORT = Recipe(epochs=2, batch_size=60, learning_rate=3e-3)
LONG = replace(SHORT, epochs=4)


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    pointset.fit(small(), train, SHORT, run=folder)
    return folder


def begun(folder: Path) -> RunFolder:
    """A run with a checkpoint after an epoch."""
    model, run = small(), RunFolder(folder)
    run.describe({"model": {}, "data": {}, "recipe": {}, "seed": 0})
    weights, state = model.state_dict(), torch.optim.AdamW(model.parameters()).state_dict()
    run.save(Checkpoint(weights, state, [{"epoch": 1, "loss": 1.0, "seconds": 0.1}], best=weights))
    return run


@pytest.mark.parametrize(
    ("name", "share"), [("history.jsonl", 0.5), ("history.jsonl", None), ("checkpoint.pt", 0.5), ("checkpoint.pt", 0.0)]
)
def test_a_file_that_is_cut_or_missing_is_named(name, share, tmp_path):
    run, file = begun(tmp_path), tmp_path / name
    content = file.read_bytes()
    file.unlink()
    if share is not None:
        file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(PointsetError, match=re.escape(name)):
        run.history() if name == "history.jsonl" else run.load()


class Executed:
    def __reduce__(self):
        return Path.write_text, (Path("executed"), "")


def saved(value) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


STATE = {"weights": {}, "optimizer": {}, "history": "[]"}


@pytest.mark.parametrize(
    "content",
    [
        b"no checkpoint",
        saved([1, 2]),
        saved({"weights": {}}),
        saved(STATE | {"further": 5}),
        saved(STATE | {"history": "[" * 100_000}),
        saved(STATE | {"history": '[{"epoch": 2, "seconds": 0.1}]'}),
        saved(STATE | {"weights": Executed()}),
    ],
)
def test_an_intact_checkpoint_with_other_content_is_named(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = begun(tmp_path)
    records.write(tmp_path / "checkpoint.pt", content)
    with pytest.raises(PointsetError) as caught:
        run.load()
    message = str(caught.value)
    assert re.search(r"checkpoint\.pt does not hold a checkpoint", message)
    assert f"or delete {tmp_path / 'checkpoint.pt'} and run the same training again" in message
    assert not Path("executed").exists()


@pytest.mark.parametrize("part", ["model", "data", "recipe", "seed"])
def test_a_run_goes_on_with_its_own_model_data_recipe_and_seed_only(part, tmp_path):
    run, same = begun(tmp_path), {"model": {}, "data": {}, "recipe": {}, "seed": 0}
    run.describe(same | {"versions": "others"})
    with pytest.raises(PointsetError, match=rf"holds another run \({part}\S* is .* there and .*1.* here\)"):
        run.describe(same | {part: 1 if part == "seed" else {"size": 1}})


def test_a_checkpoint_of_another_model_or_optimizer_is_refused(tmp_path):
    run, model = begun(tmp_path), small()
    state = pointset.create_model("isab4-pma", classes=3, heads=2, layers=3)
    moved = torch.optim.AdamW(state.parameters())
    with pytest.raises(PointsetError, match="does not fit the model"):
        run.load().restore(state, moved)
    for parameter in state.parameters():
        parameter.grad = torch.zeros_like(parameter)
    moved.step()
    checkpoint = run.load()
    checkpoint.optimizer = moved.state_dict()
    with pytest.raises(PointsetError, match="the optimizer state of the checkpoint does not belong to this run"):
        checkpoint.restore(model, torch.optim.AdamW(model.parameters()))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda about: [about], "run"),
        (lambda about: about | {"model": about["model"] | {"inputs": "three"}}, "$.model.inputs"),
        (lambda about: about | {"model": about["model"] | {"options": {"weights": 5}}}, "run.json"),
        (lambda about: about | {"data": about["data"] | {"classes": ["ball", "box"]}}, "2 names for 3 classes"),
        (lambda about: about | {"data": about["data"] | {"normalize": "somehow"}}, "somehow"),
    ],
)
def test_an_intact_description_of_something_else_is_refused(change, named, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    records.write_json(folder / "run.json", change(json.loads((folder / "run.json").read_text())))
    with pytest.raises(PointsetError, match=r"run\.json does not") as caught:
        load_run(folder)
    assert named in str(caught.value)


def test_a_checkpoint_that_a_kill_left_in_a_finished_run_is_dropped(finished, train, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    shutil.copy(begun(tmp_path / "other").path / "checkpoint.pt", folder)
    pointset.fit(small(), train, SHORT, run=folder)
    assert not (folder / "checkpoint.pt").exists()


@pytest.mark.slow
def test_a_description_without_a_finished_epoch_is_not_a_run(train, tmp_path):
    (tmp_path / "run.json").write_text('{"seed": 7}')
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


def test_a_folder_that_another_process_trains_in_is_refused(train, tmp_path):
    with RunFolder(tmp_path).locked(), pytest.raises(PointsetError, match="another process is training in"):
        pointset.fit(small(), train, SHORT, run=tmp_path)
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


def fit(train: PointSets, recipe: Recipe, run: Path | None = None, **options: Any) -> pointset.Fitted:
    return pointset.fit(small("rff-max"), train, recipe, run=run, progress=False, **options)


def kill(*_: Any, **__: Any) -> None:
    raise StopError


def test_callbacks_get_a_copy_of_every_row(train):
    rows, rows_seen = [], []

    def watch(row: dict) -> int:
        rows.append(dict(row))
        row.clear()
        return 1  # a true value, as `file.write` gives one, does not end a run

    fitted = fit(train, SHORT, callbacks=[watch, rows_seen.append])
    assert rows == rows_seen == fitted.history
    assert [row["epoch"] for row in rows] == [1, 2]


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_callback_ends_a_run_which_is_finished_then(answer, train, tmp_path, monkeypatch):
    whole = fit(train, LONG)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", kill)  # after the checkpoint that knows of the answer
        with pytest.raises(StopError):
            fit(train, LONG, tmp_path, callbacks=[lambda row: answer if row["epoch"] == 2 else None])
    ended = fit(train, LONG, tmp_path)
    assert [row.get("stopped") for row in ended.history] == [None, True]
    assert numbers(ended.history)[0] == numbers(whole.history)[0]
    assert json.loads((tmp_path / "history.jsonl").read_text().splitlines()[1])["stopped"] is True
    monkeypatch.setattr(Training, "_epoch", kill)
    assert fit(train, LONG, tmp_path).history == ended.history


def other_weights() -> nn.Module:
    model = small("rff-max")
    model.load_state_dict(small("rff-max", seed=1).state_dict())
    return model


def partly_frozen() -> nn.Module:
    model = small("rff-max")
    next(model.parameters()).requires_grad_(False)
    return model


@pytest.mark.parametrize("is_finished", [True, False])
@pytest.mark.parametrize(
    ("make", "words"),
    [(other_weights, "began with other weights"), (partly_frozen, "other frozen parameters .* frozen only here")],
)
def test_a_run_of_other_initial_weights_or_frozen_parameters_is_refused(
    make, words, is_finished, train, tmp_path, monkeypatch
):
    model = small("rff-max")
    with monkeypatch.context() as patch:
        if not is_finished:
            patch.setattr(RunFolder, "finish", kill)
        with contextlib.suppress(StopError):
            pointset.fit(model, train, SHORT, run=tmp_path, progress=False)
    other = make()
    before = copy.deepcopy(other.state_dict())
    with pytest.raises(PointsetError, match=words):
        pointset.fit(other, train, SHORT, run=tmp_path, progress=False)
    assert all(tensor.equal(before[name]) for name, tensor in other.state_dict().items())
    again = pointset.fit(small("rff-max"), train, SHORT, run=tmp_path, progress=False)
    assert same_weights(again.model, model)
    pointset.fit(again.model, train, SHORT, run=tmp_path, progress=False)  # it has the weights of the finished run


def test_a_model_that_is_frozen_as_a_whole_is_refused(train):
    with pytest.raises(PointsetError, match="all parameters of the model are frozen: set requires_grad"):
        pointset.fit(small().requires_grad_(False), train, SHORT, progress=False)


def rms(rate: float) -> Any:
    return partial(torch.optim.RMSprop, lr=rate)


def decay(step: int, steps: int) -> float:
    return 1 - step / steps


OWN = {"loss": nn.CrossEntropyLoss(), "optimizer": rms(1e-3)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": nn.CrossEntropyLoss(label_smoothing=0.3)}, r"another run \(loss"),
        ({"loss": None}, r"another run \(loss"),
        ({"optimizer": rms(1e-4)}, r"another run \(optimizer\.groups"),
        ({"optimizer": torch.optim.Adagrad}, r"another run \(optimizer"),
        ({"optimizer": None}, r"another run \(optimizer"),
        ({"recipe": replace(LONG, schedule=lambda step, steps: 1.0)}, r"another run \(recipe\.schedule"),
    ],
)
def test_a_run_with_a_loss_optimizer_and_schedule_of_ones_own_resumes_with_the_same_alone(
    changes, words, train, tmp_path, monkeypatch
):
    own = {"recipe": replace(LONG, schedule=decay), **OWN}
    whole = fit(train, **own)
    assert [row["learning_rate"] for row in whole.history[:2]] != [0.0, 0.0]
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StopError):
            fit(train, run=tmp_path, **own)
    with pytest.raises(PointsetError, match=words):
        fit(train, run=tmp_path, **{**own, **changes})
    resumed = fit(train, run=tmp_path, **own)
    assert numbers(resumed.history) == numbers(whole.history)
    assert same_weights(resumed.model, whole.model)


def test_a_loss_and_a_schedule_do_what_they_compute(train):
    recipe = replace(SHORT, label_smoothing=0.2, schedule="constant", warmup=0.0)
    usual = fit(train, recipe)
    same = fit(train, replace(recipe, schedule=lambda step, steps: 1.0), loss=nn.CrossEntropyLoss(label_smoothing=0.2))
    assert numbers(same.history) == numbers(usual.history)
    adam = fit(train, recipe, optimizer=partial(torch.optim.Adam, lr=recipe.learning_rate))
    assert numbers(adam.history)[-1] == pytest.approx(
        numbers(fit(train, replace(recipe, optimizer="adam")).history)[-1], rel=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"loss_fn": len}, TypeError, r"no argument 'loss_fn': use loss, called as loss\(logits, labels\)"),
        ({"criterion": len}, TypeError, "'criterion': use loss"),
        ({"scheduler": len}, TypeError, r"'scheduler': use Recipe\(schedule=...\), a function of \(step, steps\)"),
        ({"callback": len}, TypeError, "'callback': use callbacks"),
        ({"optimzer": len}, TypeError, "'optimzer': use optimizer"),
        ({"loss": nn.CrossEntropyLoss(reduction="none")}, PointsetError, r"must return the mean of a batch, .* \["),
        ({"optimizer": lambda _: 5}, PointsetError, r"optimizer\(parameters\) must return a torch.optim.Optimizer"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)])}, PointsetError, "must be a function of the parameters"),
        (
            {"loss": nn.CrossEntropyLoss(), "recipe": replace(SHORT, class_weights="balanced")},
            PointsetError,
            "class_weights cannot be used with a loss of your own",
        ),
    ],
)
def test_what_a_training_cannot_take_is_answered_with_what_it_takes(arguments, kind, words, train):
    with pytest.raises(kind, match=words) as caught:
        fit(train, **{"recipe": SHORT, **arguments})
    assert "\n" not in str(caught.value)


X = np.random.default_rng(0).normal(size=(12, 20, 3)) * ([[[1, 1, 1]], [[1, 1, 0.05]]] * 6)
BRIEF = Recipe(epochs=1, batch_size=8)


def single(name: str, run: Path) -> None:
    sets = pointset.from_arrays(X, [0, 1] * 6)
    pointset.fit(pointset.create_model(name, classes=2), sets, BRIEF, run=run, progress=False)


def product(run: Path) -> None:
    """As `pointset train --data FOLDER` writes it if several classifiers together are best."""
    sets = pointset.from_arrays(X, [0, 1] * 6)
    model = mix([pointset.create_model(name, classes=2) for name in ("rff-max", "isab4-pma")])
    folder = RunFolder(run)
    folder.describe(describe_run(model, sets, BRIEF, 0))
    folder.finish(model.state_dict())


@pytest.mark.parametrize("train", [partial(single, "isab4-pma"), partial(single, "features-svm"), product])
def test_every_kind_of_run_is_the_same_in_a_file(tmp_path, train):
    train(tmp_path / "run")
    card = pack_run(tmp_path / "run", tmp_path / "a.pointset")
    pack_run(tmp_path / "run", tmp_path / "b.pointset")
    assert (tmp_path / "a.pointset").read_bytes() == (tmp_path / "b.pointset").read_bytes()
    (folder, described), (file, packed) = (pointset.load_run(tmp_path / name) for name in ("run", "a.pointset"))
    np.testing.assert_array_equal(folder.predict(X), file.predict(X))
    assert described == packed
    assert card["model"] == described["model"]["name"]


@pytest.fixture(scope="module")
def packed(clouds_folder, tmp_path_factory):
    """The file of a run on the toy dataset, beside its folder."""
    folder = tmp_path_factory.mktemp("packed")
    train_run(folder / "run", clouds_folder, "rff-max", recipe=BRIEF)
    pack_run(folder / "run", folder / "toy.pointset")
    return folder / "toy.pointset"


def test_commands_take_the_file_as_a_model(packed, clouds_folder, tmp_path, capsys):
    output = succeed(capsys, "pack", packed.parent / "run", "-o", tmp_path / "toy.pointset")
    assert hashlib.sha256(packed.read_bytes()).hexdigest() in output
    models = (packed.parent / "run", packed)
    run, file = (asked(capsys, "evaluate", "--data", clouds_folder, "--model", model) for model in models)
    assert run["accuracy"] == file["accuracy"]
    assert str(clouds_folder) not in packed.read_bytes().decode("latin-1")
    assert "--data" in fail(capsys, "evaluate", "--model", packed)
    for run, target, word in ((packed.parent, "a.pointset", "run.json"), (packed.parent / "run", "a.zip", ".pointset")):
        assert word in fail(capsys, "pack", run, "-o", tmp_path / target)
    assert "does not exist" in fail(capsys, "evaluate", "--model", "gone.pointset")


def rewritten(packed: Path, path: Path, compression: int = zipfile.ZIP_STORED, **changes: bytes | None) -> Path:
    """A copy of a packed run, with files that are changed (by their stem), and others by their name."""
    with zipfile.ZipFile(packed) as archive:
        content = {Path(name).stem: (name, archive.read(name)) for name in archive.namelist()}
    content |= {name: (content.get(name, (name,))[0], new) for name, new in changes.items()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, entry in content.values():
            if entry is not None:
                archive.writestr(name, entry)
    return path


def test_a_file_that_is_not_as_it_was_packed_is_refused(packed, tmp_path):
    path = tmp_path / "a.pointset"
    whole = packed.read_bytes()
    bad = {
        "cut": lambda: path.write_bytes(whole[: len(whole) // 2]),
        "empty": lambda: path.write_bytes(b""),
        "flipped": lambda: path.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:]),
        "compressed": lambda: rewritten(packed, path, zipfile.ZIP_DEFLATED),
        "card.json, run.json": lambda: rewritten(packed, path, model=None),
        "../evil.py": lambda: rewritten(packed, path, **{"../evil.py": b"print()"}),
        "format 2": lambda: rewritten(packed, path, card=b'{"format": 2}'),
        "does not describe a run": lambda: rewritten(packed, path, run=b"{}"),
        "not a packed run": lambda: rewritten(packed, path, model=b"\x80\x04."),  # a pickle
        "does not fit": lambda: rewritten(packed, path, model=safetensors.torch.save({"weight": torch.zeros(1)})),
    }
    for words, write in bad.items():
        write()
        with pytest.raises(PointsetError, match=r"a\.pointset") as caught:
            pointset.load_run(path)
        message = str(caught.value)
        assert "\n" not in message
        assert words in message or words in ("cut", "empty", "flipped"), message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pointset"]
    assert not (tmp_path.parent / "evil.py").exists()
