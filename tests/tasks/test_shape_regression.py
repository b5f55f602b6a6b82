"""Comparisons of regressors: numbers of shapes as a task."""

import json
from pathlib import Path

import numpy as np
import pytest
import toy
from command_line import succeed

import pointset
from pointset.comparison.statistics import compare_pairs
from pointset.evaluation.numbers import load_numbers
from pointset.tasks.shipped import shipped_experiment

PROTOCOL = {
    "seeds": [0, 1],
    "model_options": pointset.ModelOptions(dim=8),
    "recipe": pointset.Recipe(epochs=2, augment=("jitter",)),
    "workers": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def boxes(tmp_path_factory) -> Path:
    return toy.write_boxes(tmp_path_factory.mktemp("boxes"))


def test_one_target_is_ranked_by_its_error(boxes, tmp_path, capsys) -> None:
    sets = pointset.DataOptions(points=32, target="volume")
    comparison = pointset.compare(["features-ridge", "rff-max"], boxes, data_options=sets, out=tmp_path, **PROTOCOL)
    rows = {row.model: row for row in comparison.rows}
    error, runs = rows["rff-max"].metrics["MAE"].mean, [comparison.run("rff-max", seed) for seed in (0, 1)]
    assert error == pytest.approx(np.mean([np.abs(load_numbers(run.folder).errors).mean() for run in runs]))
    (pair,) = next(iter(comparison.pairs.values()))
    assert pair.over_shapes.low <= pair.difference <= pair.over_shapes.high
    assert pair.p_mcnemar is None
    table = (tmp_path / "table.md").read_text()
    assert "0.000000 " not in table, "as many decimals as the errors need"
    assert f"{error:.1e}"[0] in table
    assert "Predicted and true" in (tmp_path / "report.html").read_text()
    assert pointset.load_run(runs[0].folder)[0].targets == ("volume",)


def test_several_targets_are_ranked_by_r2(boxes, tmp_path) -> None:
    sets = pointset.DataOptions(points=32, target=("volume", "height"))
    comparison = pointset.compare(
        ["features-ridge"], boxes, data_options=sets, out=tmp_path, **{**PROTOCOL, "seeds": [0]}, report=False
    )
    metrics = json.loads((tmp_path / "results.json").read_text())["runs"][0]["metrics"]
    assert metrics["R2"] == pytest.approx((metrics["R2 volume"] + metrics["R2 height"]) / 2)
    scores = comparison.experiment.task.scores(comparison.runs[0])
    assert scores.mean() == pytest.approx(metrics["R2"])


def test_the_command_and_its_experiment(boxes, tmp_path, capsys) -> None:
    flags = "--models features-ridge rff-max --seeds 0 --points 32 --workers 1 --epochs 1 --least-steps 1 --dim 8"
    command = ("compare", "--data", boxes, "--target", "height", *flags.split(), "--out", tmp_path / "out")
    assert "MAE" in succeed(capsys, *command)
    assert shipped_experiment("numbers").exists()


def test_pairs_of_errors_per_shape_have_a_bootstrap_over_shapes() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.random(50), rng.random(50) + 0.5
    (pair,) = compare_pairs({"good": {0: good}, "bad": {0: bad}}, pooled=False)
    assert pair.p == pair.p_shapes < 0.01
    (alone,) = compare_pairs({"good": {0: good[:1]}, "bad": {0: bad[:1]}}, pooled=False)
    assert alone.p is None
