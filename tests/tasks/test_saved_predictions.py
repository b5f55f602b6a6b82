"""predictions.npz beside a run: logits, labels, and the names of shapes and classes."""

import io

import numpy as np

from pointset.evaluation import Evaluation
from pointset.runs import digests
from pointset.tasks.classification.predictions import load_predictions, save_predictions


def test_names_are_kept_and_files_without_them_are_read(tmp_path):
    names = ["bed/ü.off", "chair/1.off"]
    evaluation = Evaluation(np.eye(2, dtype=np.float32), np.array([0, 1]), ["bed", "chair"], names)
    save_predictions(evaluation, tmp_path)
    with np.load(tmp_path / "predictions.npz") as file:
        assert file["names"].tolist() == names
        assert file["classes"].tolist() == ["bed", "chair"]
    assert load_predictions(tmp_path).names == names
    stream = io.BytesIO()
    np.savez(stream, logits=evaluation.logits, labels=evaluation.labels)
    digests.write(tmp_path / "predictions.npz", stream.getvalue())
    found = load_predictions(tmp_path, ["bed", "chair"])
    assert (found.names, found.accuracy) == ([], 1.0)
