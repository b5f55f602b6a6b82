"""Files that are complete at every moment, damage and wrong types of any kind, and tables without formulas."""

import copy
import csv
import errno
import json
import os
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
import toy

import pointset
from pointset import PointsetError, Recipe, rank
from pointset.commands.zoo import zoo
from pointset.comparison.rank import read_tables
from pointset.comparison.report.sections import commit_of, machine_of
from pointset.comparison.results import as_dict, gather, origins
from pointset.comparison.runs import check_folder, make_runs
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.reload import load_like
from pointset.evaluation.predictions import validation_temperature
from pointset.evaluation.shape_files import Guess, save_embeddings, write_guesses
from pointset.runs import atomic, records
from pointset.runs.atomic import check_writable, locked, new_folder, write_atomically
from pointset.runs.files import read_file
from pointset.runs.records import write_or_compare
from pointset.runs.spreadsheets import as_csv, read_csv
from pointset.tasks import read_experiment
from pointset.training.checkpoints import Checkpoint, RunFolder
from pointset.training.fine_tuning import Plan
from pointset.zoo import pretrained

REMEDY = "delete all and start again"
BAD = (b"", b"{", b"\xff", b"[" * 100_000)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/page.html", "{}/file is a file, not a folder"),
        ("file/new/page.html", "{}/file is a file, not a folder"),
        ("link/page.html", "{}/link is a broken link, not a folder"),
        ("folder", "it is a folder"),
        (f"{'x' * 300}/page.html", "x does not exist"),
        ("no/such/page.html", "the folder {}/no/such does not exist"),
    ],
)
def test_the_error_for_an_unwritable_path_names_the_cause(place, why, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PointsetError) as caught:
        check_writable(tmp_path / place)
    assert f"{tmp_path / place} cannot be written" in str(caught.value)
    assert why.format(tmp_path) in str(caught.value)


def test_files_are_flushed_before_they_are_renamed_and_folders_with_what_is_in_them(tmp_path, monkeypatch):
    flushed, paths = [], [tmp_path / "a.bin", tmp_path / "new", tmp_path / "new" / "b.bin"]

    def flush(number):
        flushed.append((os.fstat(number).st_ino, [path.exists() for path in paths[:2]]))

    monkeypatch.setattr(os, "fsync", flush)
    write_atomically(paths[0], lambda temporary: temporary.write_bytes(b"1"))
    with new_folder(paths[1]) as folder:
        (folder / "b.bin").write_bytes(b"2")
    file, folder, inside = (path.stat().st_ino for path in paths)
    assert flushed == [(file, [False, False]), (inside, [True, False]), (folder, [True, False])]


def test_a_folder_that_is_not_finished_does_not_get_its_name(tmp_path):
    (tmp_path / ".new.1.tmp" / "of a killed process").mkdir(parents=True)
    with suppress(KeyboardInterrupt), new_folder(tmp_path / "new.1") as folder:
        assert list(folder.iterdir()) == []
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), r"a\.json is missing"),
        (lambda path: (path.unlink(), path.mkdir()), r"a\.json cannot be read"),
        *((lambda path, content=content: path.write_bytes(content), r"a\.json does not hold JSON") for content in BAD),
    ],
)
def test_damage_is_one_sentence_with_the_file_and_what_to_do(damage, words, tmp_path):
    path = tmp_path / "of two words" / "it's a.json"
    records.write_json(path, 1)
    damage(path)
    with pytest.raises(records.DamagedError, match=rf"{words}.*{REMEDY}") as caught:
        records.read_json(path, REMEDY)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 450 + 2 * len(str(tmp_path))


def test_a_folder_of_another_description_is_refused_with_the_first_difference(tmp_path):
    file, own = tmp_path / "run.json", {"model": {"dim": 8, "heads": (1, 2)}, "seed": 0}
    for description in (own, own, own | {"seed": 1}):
        write_or_compare(file, description, ["model"], "run")
    with pytest.raises(PointsetError, match=r"holds another run \(model\.dim is 8 there and 9 here\)"):
        write_or_compare(file, {"model": {"dim": 9}}, ["model"], "run")


@pytest.mark.parametrize("moment", range(2))
def test_killed_at_any_moment_the_old_or_the_new_file_is_whole(moment, tmp_path, monkeypatch):
    """A write is a flush and a rename."""
    path = tmp_path / "a.json"
    records.write_json(path, "old")
    calls = iter(range(100))

    def deadly(plain):
        def call(*arguments):
            if next(calls) == moment:
                raise KeyboardInterrupt  # which no handler of errors catches
            return plain(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", deadly(atomic.sync))
        patched.setattr(Path, "replace", deadly(Path.replace))
        with pytest.raises(KeyboardInterrupt):
            records.write_json(path, "new")
    assert records.read_json(path, REMEDY) == "old"
    records.write_json(path, "newest")
    assert records.read_json(path, REMEDY) == "newest"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named_and_the_old_file_stays(number, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    records.write_json(path, "old")

    def full(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", full)
        with pytest.raises(PointsetError, match=rf"cannot be written \({os.strerror(number)}\)"):
            records.write_json(path, "new")
    assert records.read_json(path, REMEDY) == "old"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_folder_has_one_owner(tmp_path):
    for _ in range(2):
        with locked(tmp_path / ".lock", "in use"), pytest.raises(PointsetError, match="in use"):  # noqa: SIM117
            with locked(tmp_path / ".lock", "in use"):
                pass
        assert {path.name for path in tmp_path.iterdir()} == {".lock"}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_only_regular_files_are_read(make, tmp_path):
    """A pipe may never end, and a device fills the memory."""
    make(tmp_path / "odd")
    with pytest.raises(PointsetError, match=r"odd|/dev/zero"):
        read_file(tmp_path / "odd")


def test_a_huge_file_is_refused(tmp_path):
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 5 << 30)  # needs no disk space
    with pytest.raises(PointsetError, match="huge: has 5,368,709,120 bytes"):
        read_file(tmp_path / "huge")


TEXTS = (
    *("=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "\tx", "\rx", "\nx"),
    *("chair", "'quoted", "'=1", "''-x", "None", "NA", "ü ♥", 'a "b", c'),
)


def has_formula(path: Path) -> bool:
    """True if a spreadsheet would compute a cell of the file: one that begins so and is not a number."""
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if not re.fullmatch(r"[-+]?[\d.]+", cell)]
    return any(cell.startswith(tuple("=+@\t\r\n-")) for cell in cells)


def test_texts_of_every_table_are_no_formulas_and_read_back_unchanged_and_numbers_stay_numbers(tmp_path):
    rows = [{"model": text, "@SUM": text, "accuracy": "-0.5"} for text in TEXTS]
    results, guessed, embedded = (tmp_path / f"{name}.csv" for name in ("results", "guessed", "embedded"))
    results.write_bytes(as_csv(rows).encode())
    assert read_csv(results) == rows
    assert as_csv([{"class": "\udcff"}]) == "class\n\\udcff\n"
    for number in (-4.6, "-4.6", "+1e3", 7):
        assert as_csv([{"n": number}]).splitlines()[1] == str(number)
    write_guesses(guessed, [Guess(f"{text}/a.off", ((text, 0.9), ("x", 0.1)), 0.3, 16, text) for text in TEXTS])
    table, names = read_tables([guessed]), [*TEXTS]
    assert table["label"].tolist() == table["prediction"].tolist() == names
    assert rank(guessed).rows[0].mean == 1
    shapes = [ShapeFile(Path("x.off"), name, name) for name in names]
    save_embeddings(embedded, "=model", shapes, np.ones((len(names), 2), np.float32))
    assert not any(map(has_formula, (results, guessed, embedded)))


MOST = 30
"""Mutations of a file that are tried, drawn at random from all."""
VALUES = (5, "x", None, [], {}, True, 10**30, -1, [[1]])
TOML = 'data = "{data}"\nmodels = ["rff-max"]\npoints = [8]\nseeds = [0]\n[model]\ndim = 8\n[recipe]\nepochs = 1\n'


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
        except (PointsetError, UserWarning) as error:  # a cache is made again, with a warning
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


def test_descriptions_and_histories_of_runs(run):
    def read() -> object:
        model = pointset.load_model(run)
        description = model.description
        test = load_like(description["data"], "test")
        return validation_temperature(model, description), model(test.points), test.classes, test.names

    check(run / "run.json", read)
    check(run / "history.jsonl", RunFolder(run).history)


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
    (folder / "it.toml").write_text(TOML.format(data=clouds_folder))
    plain = read_experiment(folder / "it.toml")
    experiment = plain.changed(robustness_seeds=(0,))
    toy.compare(experiment, folder)
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


def test_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    for number in range(4):
        toy.write_mesh(tmp_path / "meshes" / f"class{number % 2}" / "train", number)

    def read() -> object:
        sets = pointset.load_dataset(tmp_path / "meshes", points=5, cache_points=9, progress=False)
        return sets.points, sets.names, sets.classes, sets.labels

    read()
    (manifest,) = tmp_path.glob("home/cache/*/manifest.json")
    check(manifest, read)


def test_shipped_models(clouds_folder, tmp_path, monkeypatch, capsys):
    toy.ship("rff-max.toy", tmp_path, clouds_folder)
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    check(tmp_path / "rff-max.toy" / "card.toml", lambda: zoo("rff-max.toy", pretrained=True) and None)
    check(tmp_path / "rff-max.toy" / "run.json", lambda: pointset.load_model("rff-max.toy")(torch.ones(1, 8, 3)))


def test_experiments_and_plans(clouds_folder, tmp_path):
    file, plan = tmp_path / "it.toml", tmp_path / "plan.json"
    file.write_text(TOML.format(data=clouds_folder))
    check(file, lambda: read_experiment(file))
    records.write_json(plan, {"steps": 60, "folds": 1})
    check(plan, lambda: Plan.read(plan))
