"""The tables that a comparison writes agree with it."""

import numpy as np
import pandas
import pytest

import pointset
from pointset.comparison.judge import read_csv_table

pytestmark = pytest.mark.slow


def test_the_tables_of_a_comparison_agree_with_it(reported):
    classes, predictions = (pandas.read_csv(reported.folder / name) for name in ("classes.csv", "predictions.csv"))
    for run in reported.runs:
        own = classes[(classes.model == run.model) & (classes.points == run.points) & (classes.seed == run.seed)]
        accuracy = run.metrics["accuracy"]
        assert np.average(own.accuracy, weights=own.shapes) == pytest.approx(accuracy)
        data = predictions[predictions.data == f"{run.points} points"]
        rows = data[(data.model == run.model) & (data.seed == run.seed)]
        assert (rows.label == rows.prediction).mean() == pytest.approx(accuracy)
    table = read_csv_table(reported.folder / "predictions.csv")
    for size, verdict in reported.verdicts.items():
        assert pointset.judge(table[table.data == f"{size} points"]).sentences() == verdict.sentences()
    with pytest.raises(pointset.PointsetError, match=r"2 data sets \(24 points, 12 points\): judge those of one"):
        pointset.judge(reported.folder)
