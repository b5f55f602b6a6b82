"""Model selection, and `pointset train` without the name of a model, with groups of shapes."""

import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command_line import asked, fail, succeed
from toy import bumpy, save, write_shapes

import pointset
from pointset import PointsetError, cli, select_model
from pointset.commands.train import _group_lines, _of_modelnet, _show
from pointset.data.groups import alone
from pointset.training import fine_tuning, selection
from pointset.training.fine_tuning import BUDGET, Plan
from pointset.training.out_of_fold import FOLDS, Candidate
from pointset.zoo.predicting import predict


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_shapes(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def train(data):
    return pointset.load_dataset(data, points=32)


@pytest.fixture(scope="module")
def without_network(train, tmp_path_factory):
    """A selection without CPU time for a network, its folder, and the candidates that were shown meanwhile."""
    run, shown = tmp_path_factory.mktemp("selected") / "run", []
    return select_model(train, budget=0.001, run=run, progress=False, on_candidate=shown.append), run, shown


def test_the_support_vector_machine_alone_if_the_budget_is_too_small_for_a_network(train, without_network):
    best, run, shown = without_network
    assert [candidate.name for candidate in shown] == [candidate.name for candidate in best.candidates] == ["svm"]
    (chosen,) = best.candidates
    assert chosen.chosen
    assert chosen.low <= chosen.accuracy <= chosen.high
    with pytest.raises(PointsetError, match="run has no network: its budget was too small to train one; train again"):
        pointset.load_model(run / "network")
    # No out-of-fold prediction was wrong: at a temperature of 0.01 a wrong class of the next shape would have 100.0 %.
    assert chosen.accuracy == chosen.mean_class_accuracy == 1
    assert 0.8 < predict(best.fitted.model, train).probabilities.max(axis=1).mean() < 0.99
    assert chosen.log_loss > 0.01
    assert pointset.load_model(run).spec.name == "surface+embedding-svm"


def test_groups_without_a_held_out_error_make_a_class_as_certain_as_so_many_shapes(tmp_path):
    """The log loss is at least that of the mean confidence, which is (n + 1) / (n + 2) after n groups."""
    train = pointset.load_dataset(write_shapes(tmp_path, shapes=10), points=32)
    groups = [f"{label}/{number // 2}" for label, number in zip(train.labels.tolist(), range(len(train)), strict=True)]
    (candidate,) = select_model(train.grouped(groups), budget=0.001, progress=False).candidates
    count = len({*groups})
    assert count <= len(train) / 2
    assert candidate.accuracy == 1
    assert candidate.log_loss > -math.log((count + 1) / (count + 2)) - 1e-6


def test_where_no_shape_can_be_held_out_no_accuracy_is_printed(tmp_path, capsys):
    data = write_shapes(tmp_path / "data", shapes=3)
    command = ("train", "--data", data, "--points", "32", "--groups", "2", "--budget", "1s", "--run", tmp_path / "run")
    cli.main([str(word) for word in command])
    said = capsys.readouterr()
    assert "svm *" in said.out
    assert "selected (no shape can be held out to compare the candidates" in said.out
    assert "svm      fitted, and not evaluated: no shape can be held out, " in said.err
    assert " 0.0" not in said.out + said.err
    assert json.loads(succeed(capsys, "evaluate", "--model", tmp_path / "run", "--json"))["accuracy"] > 0.5


@pytest.mark.parametrize("flags", [("rff-max", "--epochs", "1"), ("--budget", "1s")])
def test_without_a_test_split_evaluate_is_not_the_next_step(flags, tmp_path, capsys):
    data = write_shapes(tmp_path, shapes=3) / "train"  # class/file; each class is a group
    said = succeed(
        capsys, "train", *flags, "--data", data, "--points", "32", "--groups", "1", "--run", tmp_path / "run"
    )
    assert "the data has no test split: give other shapes" in said
    assert "pointset evaluate" not in said


def test_a_selection_for_any_pose_gives_a_turned_shape_its_class(data, tmp_path, capsys):
    run = tmp_path / "run"
    command = ("--points", "64", "--budget", "1s", "--run", run)
    succeed(capsys, "train", "--data", data, "--normalize", "principal-axes", *command)
    assert pointset.load_model(run).description["data"]["normalize"] == "principal-axes"
    flat, turned = data / "test" / "flat" / "flat_0.npy", tmp_path / "turned.npy"
    np.save(turned, np.load(flat)[:, [2, 0, 1]] * [1, -1, -1])
    found = asked(capsys, "classify", flat, turned, "--model", run, "--pose", "any")["predictions"]
    likeliest = [each["classes"][0] for each in found]
    assert [each["class"] for each in likeliest] == ["flat", "flat"]
    assert likeliest[0]["probability"] == pytest.approx(likeliest[1]["probability"], abs=1e-3)


def test_a_run_without_a_network_is_neither_drawn_nor_exported(data, without_network, tmp_path, capsys):
    _, run, _ = without_network
    shape = data / "test" / "flat" / "flat_0.npy"
    said = fail(capsys, "attend", shape, "--model", run, "-o", tmp_path / "a.html")
    assert "surface+embedding-svm, and only networks can be drawn: train one by name" in said
    said = fail(capsys, "export", "--model", run, "-o", tmp_path / "a.pt2")
    assert "surface+embedding-svm, and only networks can be exported: train one by name" in said


@pytest.mark.parametrize(("classes", "lines"), [(("Chair", "night stand", "x", "y"), 1), (("chair", "x", "y"), 0)])
def test_figures_of_shapes_that_trained_weights_may_have_seen_are_doubted(classes, lines):
    said = list(_of_modelnet(classes))
    assert len(said) == lines
    assert all("2 of 4 classes are classes of ModelNet40" in line for line in said)


def test_out_of_fold_networks_are_not_trained_on_the_shapes_that_they_predict(train, monkeypatch):
    used: list[tuple[set, set]] = []

    def predicted(model, sets):
        used.append((set(model.names), set(sets.names)))
        return SimpleNamespace(logits=torch.zeros(len(sets), 2))

    # The network is the sets that it was fitted to.
    monkeypatch.setattr(selection, "fit", lambda network, sets, *_, **__: SimpleNamespace(model=sets))
    monkeypatch.setattr(selection, "predict", predicted)
    logits, _ = selection._Selection(train, 0, None, False, None)._network_out_of_fold(Plan(60, FOLDS))
    assert logits.isfinite().all()
    assert len(used) == FOLDS
    for fitted, tested in used:
        assert fitted.isdisjoint(tested)
        assert len(fitted) + len(tested) == len(train)


@pytest.mark.filterwarnings("ignore:of clouds with more points")
def test_train_without_a_model_gives_a_run_that_can_be_used_and_resumed(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(selection, "select_candidate", lambda *_: ("ensemble", "for this test"))
    monkeypatch.setattr(selection._Selection, "_plan", lambda *_: Plan(steps=8, folds=1))
    monkeypatch.setattr(fine_tuning, "FEWEST_STEPS", 8)
    folder = tmp_path / "my run"
    command = ("train", "--data", data, "--points", "32", "--run", folder)
    printed = succeed(capsys, *command)
    assert f"  pointset attend FILE --model '{folder}'" in printed.splitlines()
    assert "ensemble *" in printed
    held_out = re.findall(r"^(?:svm|network|ensemble) .* (\d+) +\d+$", printed, re.MULTILINE)
    assert len(held_out) == 3
    assert len({*held_out}) == 1, "the candidates are evaluated on the same shapes"
    model = pointset.load_model(folder)
    description = model.description
    assert model.classes == ["ball", "flat"]
    assert json.loads(succeed(capsys, "evaluate", "--model", folder, "--json"))["accuracy"] > 0.8
    assert "sentences" in asked(capsys, *command)  # read again
    assert json.loads(succeed(capsys, "classify", data / "test", "--model", folder, "--json"))["shapes"] == 16
    assert str(folder / "network") in fail(capsys, "export", "--model", folder, "-o", tmp_path / "a.onnx")
    (folder / "model.safetensors").unlink()  # as after a kill just before the end
    (folder / "run.json").unlink()
    assert f"{folder} is not finished" in fail(capsys, "evaluate", "--model", folder)
    weights = model.state_dict()
    succeed(capsys, *command)
    again = pointset.load_model(folder)
    assert all(again.state_dict()[name].equal(tensor) for name, tensor in weights.items())
    names = [candidate["name"] for candidate in json.loads((folder / "candidates.json").read_text())["candidates"]]
    assert (folder / "network").exists()
    assert names == ["svm", "network", "ensemble"]
    assert model.temperature == again.temperature == description["temperature"] != 1
    assert description["data"]["normalize"] == "center-standardize"


@pytest.mark.slow
def test_pretrained_begins_from_trained_weights(data, tmp_path, capsys):
    folder = tmp_path / "run"
    flags = ("--data", data, "--points", "32", "--steps", "4", "--epochs", "1", "--learning-rate", "1e-12")
    succeed(capsys, "train", "rff-pma4", "--pretrained", "modelnet40-1024", *flags, "--run", folder)
    model = pointset.load_model(folder)
    description = model.description
    assert description["model"]["pretrained"] == "rff-pma4.modelnet40-1024"
    trained = pointset.load_model("rff-pma4.modelnet40-1024")
    for mine, theirs in zip(model.encoder.parameters(), trained.encoder.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
    said = fail(capsys, "train", "isab16-max", "--pretrained", folder, *flags, "--run", tmp_path / "other")
    assert f"{folder} is a run of rff-pma4, not of isab16-max" in said
    again = ("train", "rff-pma4", "--pretrained", folder, *flags, "--run", tmp_path / "other")
    assert "next: pointset evaluate" in succeed(capsys, *again)


@pytest.mark.filterwarnings("ignore:of clouds with more points")
def test_attend_draws_the_network_beside_a_chosen_baseline_and_says_so(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(selection, "select_candidate", lambda *_: ("svm", "for this test"))
    monkeypatch.setattr(selection._Selection, "_plan", lambda *_: Plan(steps=8, folds=1))
    monkeypatch.setattr(fine_tuning, "FEWEST_STEPS", 8)
    folder = tmp_path / "run"
    printed = succeed(capsys, "train", "--data", data, "--points", "32", "--run", folder)
    assert f"attend FILE --model {folder}\n" in printed
    shape = data / "test" / "flat" / "flat_0.npy"
    cli.main(["attend", str(shape), "--model", str(folder), "-o", str(tmp_path / "a.html")])
    said = capsys.readouterr()
    assert f"{folder} is surface+embedding-svm, which `classify` uses; the network in {folder}" in said.err
    assert (tmp_path / "a.html").exists()


def test_the_clock_only_cuts_the_network_and_that_is_said(train, monkeypatch):
    monkeypatch.setattr(fine_tuning, "fit", lambda *_, **__: None)
    clock = iter([])
    monkeypatch.setattr(fine_tuning.time, "process_time", lambda: next(clock))

    def plan(budget: float) -> tuple[int, int, str]:
        nonlocal clock
        # From 0 to 5 what is cached and a step, to 15 one step, to 105 nine steps: 10 seconds a step.
        clock = iter([0.0, 0.0, 5.0, 5.0, 15.0, 15.0, 105.0, 110.0])
        made = Plan.within(budget, 0.0, train, 0)
        return made.steps, made.folds, made.cut(budget, train)

    assert plan(36110.0) == (600, FOLDS, "")
    assert plan(24110.0) == (600, 3, "")
    assert plan(12110.0) == (600, 1, "")
    assert plan(9110.0)[:2] == (300, 2)
    for budget in (6110.0, BUDGET):  # the usual budget pays for half of the steps whatever the clock says
        *numbers, cut = plan(budget)
        assert numbers == [300, 1]
        said = f"; the network had 300 of 600 steps, for the budget of {budget:g} s; --budget 12,110s would be"
        assert cut == f"{said} enough for all steps"
    assert plan(100.0)[2].startswith("; no network was trained, for the budget of 100 s; --budget 12,110s")


def test_one_held_out_shape_is_no_plural(capsys):
    _show(Candidate("network", 1.0, 0.1, 1.0, 1.0, None, 1, 2.0))
    assert capsys.readouterr().err == "network  100.0 % of 1 held-out shape, 2 CPU seconds\n"


@pytest.mark.filterwarnings("default:data has at most 20 points")
def test_clouds_of_fewer_points_than_usual_are_taken_as_they_are(tmp_path, capsys):
    data = write_shapes(tmp_path / "data", points=20)
    cli.main(["train", "--data", str(data), "--budget", "1s", "--run", str(tmp_path / "run")])
    captured = capsys.readouterr()
    assert "at most 20 points per shape" in captured.err
    assert "selected" in captured.out
    assert pointset.load_model(tmp_path / "run").description["data"]["preparation"]["points"] == 20


def write_views(folder):
    """Shapes of two classes, every one sampled three times; class/file, so that a part of them is test."""
    for label, name in enumerate(("bumpy", "plain")):
        for number, view in itertools.product(range(5), range(3)):
            cloud = bumpy(10 * label + number, 256, view) / (1, 1, 1 + 4 * label)
            save(folder / name / f"{name}{number}_{view}.npy", cloud)
    return folder


@pytest.mark.slow
def test_groups_of_names_are_held_out_together_and_shown_again(tmp_path, capsys, monkeypatch):
    data = write_views(tmp_path / "data")
    command = ("train", "--data", data, "--points", "128", "--budget", "1s", "--run", tmp_path / "run")
    printed = succeed(capsys, *command)
    assert "10 groups by file names without their last number, such as 'bumpy0' (" in printed
    assert "test shapes are in groups of training shapes" in printed
    with monkeypatch.context() as patch:
        patch.setattr(selection._Selection, "run", None)
        assert succeed(capsys, *command) == printed, "read again, and not fitted"


@pytest.mark.slow
def test_a_split_that_divides_groups_is_told_of_until_it_is_by_groups(tmp_path, capsys):
    data = write_views(tmp_path / "data")
    table = ("compare", "--models", "rff-max", "features-svm", "--seeds", "0", "--epochs", "1", "--out")
    lines = [("train", "features-svm", "--run"), table]
    names = [pointset.load_dataset(data, split, 128).names for split in ("train", "test")]
    trained, tested = ([name.rpartition("_")[0] for name in side] for side in names)
    divided = f"{sum(name in trained for name in tested)} of {len(tested)} test shapes are in groups of training shapes"
    for line in lines:
        said = succeed(capsys, *line, tmp_path / line[0], "--data", data, "--points", "128")
        assert divided in said, line
        assert "--groups names splits it by groups" in said
        where = tmp_path / f"grouped{line[0]}"
        said = succeed(capsys, *line, where, "--data", data, "--groups", "names", "--points", "128")
        assert "in groups of training" not in said


def test_groups_of_training_shapes_alone_do_for_a_folder_with_splits(tmp_path, capsys):
    data = write_shapes(tmp_path / "data", shapes=4)
    names = pointset.load_dataset(data, points=32).names
    table = tmp_path / "mine.csv"
    table.write_text("file,group\n" + "".join(f"{name},{name[-6:-4]}\n" for name in names))
    command = ("train", "--data", data, "--points", "32", "--groups", table, "--budget", "1s", "--run")
    succeed(capsys, *command, tmp_path / "run")
    assert json.loads(succeed(capsys, "evaluate", "--model", tmp_path / "run", "--json"))["shapes"] == 8
    table.write_text("file,group\n" + "".join(f"{name},1\n" for name in names[1:]))
    assert f"does not give the group of '{names[0]}'" in fail(capsys, *command, tmp_path / "other")


@pytest.mark.parametrize(
    ("source", "name", "groups", "said"),
    [
        ("/folder", "{0}_{1}.off", None, "give --groups a CSV table of files and groups, a regular expression"),
        ("/folder", "{0}_{1}.off", "none", ""),
        ("/folder", "{1}_{0}x.off", None, ""),
        ("modelnet40", "{0}.off", None, ""),
    ],
)
def test_where_names_end_in_numbers_and_tell_no_groups_the_option_is_named(source, name, groups, said):
    best = SimpleNamespace(grouping=alone(16))
    names = [name.format(row // 2, row % 2) for row in range(16)]
    sets = SimpleNamespace(
        names=names, source=source, classes=(), grouping=alone(16), options=pointset.DataOptions(groups=groups)
    )
    lines = [*_group_lines(best, sets)]
    assert len(lines) == bool(said)
    assert said in "".join(lines)
