"""Finished comparisons and runs, read back as frames."""

import numpy as np
import pytest

import pointset
from pointset.errors import PointsetError

pytestmark = pytest.mark.slow


def test_the_frames_of_a_comparison_agree_with_it(reported):
    saved = pointset.load_comparison(reported.folder)
    assert len(saved.runs) == len(reported.runs)
    for run in reported.runs:
        own = (
            (saved.classes.model == run.model) & (saved.classes.points == run.points) & (saved.classes.seed == run.seed)
        )
        weights = saved.classes[own]
        accuracy = run.metrics["accuracy"]
        assert np.average(weights.accuracy, weights=weights.shapes) == pytest.approx(accuracy)
        data = saved.predictions[saved.predictions.data == f"{run.points} points"]
        rows = data[(data.model == run.model) & (data.seed == run.seed)]
        assert (rows.label == rows.prediction).mean() == pytest.approx(accuracy)
    assert set(saved.histories.groupby(["model", "points", "seed"]).size()) == {3}, "epochs"
    parts = saved.judge().parts
    assert {name: part.sentences() for name, part in parts.items()} == {
        f"{size} points": verdict.sentences() for size, verdict in reported.verdicts.items()
    }


def test_the_frames_of_a_run_agree_with_it(reported):
    run = reported.run("rff-max", 0, 24)
    saved = pointset.load_evaluation(run.folder)
    shares = saved.predictions.filter(like="probability_")
    assert shares.sum(axis=1).to_numpy() == pytest.approx(1.0)
    right = saved.predictions.label == saved.predictions.prediction
    assert right.mean() == saved.evaluation.accuracy == run.metrics["accuracy"]
    assert saved.classes.set_index("class").accuracy.to_dict() == saved.evaluation.per_class
    assert list(saved.history.epoch) == [1, 2, 3]


@pytest.mark.parametrize("load", [pointset.load_comparison, pointset.load_evaluation])
def test_other_folders_are_refused(load, tmp_path):
    with pytest.raises(PointsetError, match="give the folder of a"):
        load(tmp_path)
