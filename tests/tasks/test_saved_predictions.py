"""predictions.npz beside a run: logits, labels, and the names of shapes and classes."""

import numpy as np

from pointset.evaluation import Evaluation
from pointset.tasks.classification.predictions import load_predictions, save_predictions


def test_predictions_are_read_as_they_were_saved(tmp_path):
    evaluation = Evaluation(
        np.eye(2, dtype=np.float32), np.array([0, 1]), ["bed", "chair"], ["bed/ü.off", "chair/1.off"]
    )
    save_predictions(evaluation, tmp_path)
    found = load_predictions(tmp_path)
    assert (found.names, found.classes, found.accuracy) == (evaluation.names, evaluation.classes, 1.0)
