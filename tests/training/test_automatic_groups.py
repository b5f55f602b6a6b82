"""Groups of shapes that belong together in `pointset train` without a model's name."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import fail, succeed
from toy import write_shapes

import pointset
from pointset import cli
from pointset.commands.train import _group_lines
from pointset.data.likeness.siblings import LIKENESS, Siblings
from pointset.runs.spreadsheets import read_csv
from pointset.training import automatic


def write_views(folder, objects=5, views=3, points=64):
    """Ellipsoids and bumpy ones, every object sampled three times; class/file, so that a part of them is test."""
    for name, bumps in {"bumpy": 0.4, "plain": 0.0}.items():
        (folder / name).mkdir(parents=True)
        for number in range(objects):
            shape = np.random.default_rng((number, len(name), int(10 * bumps)))
            scales, waves = shape.uniform(0.3, 1, 3), 3 * shape.normal(size=(3, 3))
            for view in range(views):
                sphere = np.random.default_rng((number, view)).normal(size=(points, 3))
                sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
                bumpy = 1 + bumps * np.sin(sphere @ waves).sum(axis=1, keepdims=True)
                np.save(folder / name / f"{name}{number}_{view}.npy", sphere * scales * bumpy)
    return folder


def test_groups_that_train_finds_are_saved_shown_again_and_taken_from_the_file(tmp_path, capsys):
    data, run = write_views(tmp_path / "data", points=256), tmp_path / "run"
    command = ("train", "--data", data, "--points", "128", "--budget", "1s", "--run", run)
    printed = succeed(capsys, *command)
    names, tested = (pointset.load_dataset(data, split=split, points=128).names for split in ("train", "test"))
    table = read_csv(run / automatic.GROUPS_FILE)
    assert [row["file"] for row in table] == sorted([*names, *tested])
    objects = {row["file"].rpartition("_")[0]: row["group"] for row in table}
    assert all(row["group"] == objects[row["file"].rpartition("_")[0]] for row in table)
    assert f"{len({*objects.values()})} groups of shapes that belong together, by names" in printed
    assert f"the group of every shape, which --groups takes: {run / automatic.GROUPS_FILE}" in printed
    assert "of seen groups %" in printed
    assert succeed(capsys, *command) == printed, "read again, and not fitted"
    train = data.with_name("train")
    for name in names:  # the file has no group of test shapes
        (train / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        (train / "train" / name).write_bytes((data / name).read_bytes())
    given = write_groups(run / automatic.GROUPS_FILE, tmp_path / "given.csv", "train/")
    again = succeed(capsys, *command[:2], train, *command[3:-1], tmp_path / "again", "--groups", given)
    trained = {name.rpartition("_")[0] for name in names}
    assert f"{len(trained)} groups of shapes that belong together, by --groups" in again


@pytest.mark.slow
def test_a_split_that_divides_groups_is_told_of_until_it_is_by_groups(tmp_path, capsys):
    data, rule = write_views(tmp_path / "data", points=256), "all but its last 1 part"
    table = ("compare", "--models", "rff-max", "features-svm", "--seeds", "0", "--epochs", "1", "--out")
    lines = [("train", "--budget", "1s", "--run"), ("train", "features-svm", "--run"), table]
    trained, tested = (
        [name.rpartition("_")[0] for name in pointset.load_dataset(data, split, 128).names]
        for split in ("train", "test")
    )
    divided = f"{sum(name in trained for name in tested)} of {len(tested)} test shapes are siblings of training shapes"
    for number, line in enumerate(lines):
        printed = succeed(capsys, *line, tmp_path / str(number), "--data", data, "--points", "128")
        assert f"{divided} by names ({rule}, confirmed" in printed, line
        assert f"with --groups '{rule}'" in printed
    assert f"with --groups '{rule}'" in succeed(capsys, "data", "check", data)
    for line in lines[1:]:
        printed = succeed(
            capsys, *line, tmp_path / "grouped" / line[0], "--data", data, "--groups", rule, "--points", "128"
        )
        assert "siblings of training" not in printed


@pytest.mark.filterwarnings("default:.*groups of the training is left out")
def test_the_saved_groups_are_taken_back_for_the_same_folder_and_split_it(tmp_path, capsys, monkeypatch):
    data, table = write_views(tmp_path / "data", points=256), "run/groups.csv"
    command = ("train", "--data", data, "--points", "128", "--budget", "1s", "--run")
    monkeypatch.chdir(tmp_path)
    succeed(capsys, *command, "run")
    assert "by --groups" in succeed(capsys, *command, tmp_path / "again", "--groups", table)
    sides = [pointset.load_dataset(data, split, 128, groups=table).names for split in ("train", "test")]
    assert not {name.rpartition("_")[0] for name in sides[0]} & {name.rpartition("_")[0] for name in sides[1]}
    monkeypatch.chdir(data)
    evaluate = ("evaluate", "--model", tmp_path / "again", "--json")
    assert json.loads(succeed(capsys, *evaluate))["shapes"] == len(sides[1])
    for path in (data / "bumpy").iterdir():  # other data, of which the table knows nothing
        path.rename(path.with_stem(f"other_{path.stem}"))
    cli.main([*map(str, evaluate), "--data", str(data)])
    assert f"{data}: groups of the training is left out, because groups='" in capsys.readouterr().err
    pointset.pack_run(tmp_path / "again", tmp_path / "again.pointset")
    assert pointset.load_run(tmp_path / "again.pointset")[1]["data"]["groups"] == "groups.csv"


def test_groups_of_training_shapes_alone_do_for_a_folder_with_splits(tmp_path, capsys):
    data = write_shapes(tmp_path / "data", shapes=4)
    names = pointset.load_dataset(data, points=32).names
    table = tmp_path / "mine.csv"
    table.write_text("file,group\n" + "".join(f"{name},{name[-6:-4]}\n" for name in names))
    command = ("train", "--data", data, "--points", "32", "--groups", table, "--budget", "1s", "--run")
    succeed(capsys, *command, tmp_path / "run")
    assert json.loads(succeed(capsys, "evaluate", "--model", tmp_path / "run", "--json"))["shapes"] == 8
    table.write_text("file,group\n" + "".join(f"{name},1\n" for name in names[1:]))
    assert f"does not say the group of '{names[0]}'" in fail(capsys, *command, tmp_path / "other")


def write_groups(path, to, before):
    """The same table for files in another folder."""
    rows = [f"{before}{row['file']},{row['group']}" for row in read_csv(path)]
    to.write_text("file,group\n" + "\n".join(rows) + "\n")
    return to


@pytest.mark.parametrize("rule", [LIKENESS, "its numbers"])
def test_groups_that_only_likeness_finds_are_said_to_be_uncertain(rule, tmp_path):
    best = SimpleNamespace(siblings=Siblings(np.arange(16), rule, 0.9), never_held_out=())
    first, *_ = _group_lines(best, tmp_path)
    assert ("accuracy may be far off" in first) == (rule == LIKENESS)
