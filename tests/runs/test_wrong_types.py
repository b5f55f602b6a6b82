"""Files that are read back, with wrong types anywhere: nothing changes, or one sentence says what to do."""

import copy
import json
import random
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
import toy

import pointset
from pointset import PointsetError, Recipe, pack_run, read_experiment, run_experiment
from pointset.commands.zoo import zoo
from pointset.comparison.report.sections import commit_of, machine_of
from pointset.comparison.results import as_dict, gather, origins
from pointset.comparison.runs import check_folder, make_runs
from pointset.data.dataset import load_like
from pointset.evaluation.predictions import validation_temperature
from pointset.runs import records
from pointset.runs.workers import Workers
from pointset.training.checkpoints import Checkpoint, RunFolder
from pointset.training.fine_tuning import Plan
from pointset.zoo import pretrained
from pointset.zoo.models import create_pretrained

MOST = 60
"""Mutations of a file that are tried, drawn at random from all."""
VALUES = (5, "x", None, [], {}, True, 10**30, -1, [[1]])
EXPERIMENT = """data = "{data}"
models = ["rff-max"]
points = [8]
seeds = [0]
[model]
dim = 8
[recipe]
epochs = 1
"""


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a value can be another: all keys at all depths, and the first entry of every list."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*place, key))


def kind_of(value: Any) -> type:
    return float if type(value) is int else type(value)


def mutations(value: Any) -> Iterator[tuple[Any, bool]]:
    """The value with another one in each place, without each place, and with a further key in each table.

    Beside each: True if the other value has another type, so that it must be refused or have no effect.
    """
    for place in places(value):
        for change in (*VALUES, "missing", "further"):
            outer = [copy.deepcopy(value)]
            inner: Any = outer
            for key in (0, *place)[:-1]:
                inner = inner[key]
            last, is_wrong = (0, *place)[-1], False
            if change == "missing":
                del inner[last]
            elif change == "further" and isinstance(inner[last], dict):
                inner[last]["further"] = 5
            else:
                is_wrong = kind_of(change) is not kind_of(inner[last]) and inner[last] is not None
                inner[last] = change
            yield from ((mutated, is_wrong) for mutated in outer)


def read_and_refused(read: Callable[[], object], write: Callable[[Any], object], value: Any, most: int = MOST) -> None:
    """Read a file with each of many mutations: an error is one line of ours, and no wrong type changes what is read."""
    tried = [*mutations(value)]
    messages, accepted, expected = list[str](), list[Any](), repr(read())
    for mutated, is_wrong in random.Random(0).sample(tried, min(most, len(tried))):
        write(mutated)
        try:
            result = repr(read())
        except (PointsetError, UserWarning) as error:  # a pool is made again, with a warning
            messages.append(str(error))
        else:
            accepted += [mutated] if is_wrong and result != expected else []
    assert messages
    assert not [message for message in messages if "\n" in message]
    assert not accepted
    write(value)
    assert repr(read()) == expected


def as_toml(value: Any) -> str:
    try:
        return tomli_w.dumps(value)
    except (TypeError, AttributeError):  # TOML has no null, and is a table
        return "x = 5"


def check(file: Path, read: Callable[[], object]) -> None:
    """Mutate a file of JSON, TOML, or lines of JSON, of which any may be another."""
    text, write = file.read_text(encoding="utf-8"), Path.write_text
    if file.suffix in (".json", ".toml"):
        loads, dumps = (json.loads, json.dumps) if file.suffix == ".json" else (tomllib.loads, as_toml)
        read_and_refused(read, lambda value: write(file, dumps(value)), loads(text))
        return
    rows = [json.loads(line) for line in text.splitlines()]
    for place in range(min(len(rows), 8)):

        def write_row(row: Any, place: int = place) -> None:
            write(file, "".join(f"{json.dumps(each)}\n" for each in [*rows[:place], row, *rows[place + 1 :]]))

        read_and_refused(read, write_row, rows[place], MOST // 8)


@pytest.fixture(scope="module")
def run(clouds_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("types") / "run"
    toy.train_run(folder, clouds_folder, "isab4-pma", recipe=Recipe(epochs=1, validation=0.2))
    return folder


def test_descriptions_of_runs(run):
    def read() -> object:
        model, description = pointset.load_run(run)
        test = load_like(description["data"], "test")
        pack_run(run, run.parent / "packed.pointset")
        return validation_temperature(model, description), model(test.points), test.classes, test.names

    check(run / "run.json", read)


def test_histories(run):
    check(run / "history.jsonl", RunFolder(run).history)


@pytest.mark.parametrize("name", ["card.json", "run.json"])
def test_packed_runs(name, run):
    file = run.parent / f"{name}.pointset"
    pack_run(run, file)
    with zipfile.ZipFile(file) as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}

    def write(value: Any) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for entry, content in (files | {name: json.dumps(value).encode()}).items():
                archive.writestr(entry, content)

    def read() -> object:
        model, description = pointset.load_run(file)
        data = description["data"]
        return model(torch.ones(1, 8, 3)), data["classes"], data["points"], data["normalize"], data["up"]

    read_and_refused(read, write, json.loads(files[name]))


def test_checkpoints(run, clouds_folder):
    folder = RunFolder(run)
    weights, history = folder.weights(), folder.history()
    stopped = RunFolder(run.parent / "stopped")

    def write(rows: Any) -> None:
        records.write(stopped.path / "checkpoint.pt", Checkpoint(weights, {}, rows).as_bytes())

    write(history)
    read_and_refused(lambda: stopped.load().history, write, history)


@pytest.fixture(scope="module")
def compared(clouds_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    (folder / "it.toml").write_text(EXPERIMENT.format(data=clouds_folder))
    plain = read_experiment(folder / "it.toml")
    experiment = replace(plain, task=replace(plain.task, robustness_seeds=(0,)))  # type: ignore[type-var]
    run_experiment(experiment, folder, Workers(1), progress=False, report=False)
    return experiment, folder


@pytest.mark.parametrize("name", ["protocol.json", "costs-n8.json", "sets-n8.json", "run.json", "result.json"])
def test_comparisons(name, compared):
    experiment, folder = compared
    (file,) = [*folder.glob(name), *folder.glob(f"runs/*/{name}")]

    def read() -> object:
        check_folder(experiment, folder)
        found = gather(experiment, folder, [run.read() for run in make_runs(experiment, folder)], measure=False)
        told = [(found.caption(), commit_of(origin), machine_of(origin)) for origin in origins(found)]
        return json.dumps(as_dict(found)), told

    check(file, read)


def test_pools(tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    for number in range(4):
        toy.write_mesh(tmp_path / "meshes" / f"class{number % 2}" / "train", number)

    def read() -> object:
        sets = pointset.load_dataset(tmp_path / "meshes", points=5, pool_points=9, progress=False)
        return sets.points, sets.names, sets.classes, sets.labels

    read()
    (manifest,) = tmp_path.glob("home/pools/*/manifest.json")
    check(manifest, read)


def test_shipped_models(clouds_folder, tmp_path, monkeypatch, capsys):
    toy.ship("rff-max.toy", tmp_path, clouds_folder)
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    check(tmp_path / "rff-max.toy" / "card.toml", lambda: zoo("rff-max.toy", pretrained=True) and None)
    check(tmp_path / "rff-max.toy" / "run.json", lambda: create_pretrained("rff-max.toy").eval()(torch.ones(1, 8, 3)))


def test_experiments(clouds_folder, tmp_path):
    file = tmp_path / "it.toml"
    file.write_text(EXPERIMENT.format(data=clouds_folder))
    check(file, lambda: read_experiment(file))


def test_plans(tmp_path):
    records.write_json(tmp_path / "plan.json", {"steps": 60, "folds": 1})
    check(tmp_path / "plan.json", lambda: Plan.read(tmp_path / "plan.json"))
