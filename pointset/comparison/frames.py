"""Read a finished comparison, or the predictions of a run, back as frames of pandas."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from scipy.special import softmax

from pointset.comparison.judge import judge
from pointset.comparison.prediction_tables import PREDICTIONS_CSV, PREDICTIONS_NPZ, read_csv_table, read_tables
from pointset.comparison.verdict import Verdict
from pointset.errors import PointsetError
from pointset.evaluation.predictions import Evaluation, load_predictions
from pointset.training.checkpoints import RunFolder

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class SavedComparison:
    """The frames of a finished comparison."""

    folder: Path
    runs: "DataFrame"
    """A row for each run: model, points, seed, its metrics, parameters and seconds."""
    classes: "DataFrame | None"
    """A row for each run and class: the number of its test shapes, and the accuracy; None of other tasks."""
    predictions: "DataFrame | None"
    """A row for each run and test shape: item, label, prediction, model and seed; of several sizes, data."""
    histories: "DataFrame"
    """A row for each run and epoch: model, points, seed, epoch, and the columns of the history."""

    def judge(self) -> Verdict:
        """The verdict on the predictions, which is that of the comparison; of several sizes, one for each."""
        return judge(self.folder)


def load_comparison(folder: str | Path) -> SavedComparison:
    """Read a finished comparison back.

    Args:
        folder: the folder that `compare` or `pointset compare` wrote.

    Returns:
        Its frames: runs, classes, predictions and histories.

    Raises:
        PointsetError: the folder has no finished comparison.

    Example:
        >>> comparison = pointset.compare(["rff-max"], "shapes10", seeds=[0], points=[16], out="runs/one",
        ...     recipe=pointset.Recipe(epochs=1), workers=1, progress=False, report=False)
        >>> saved = pointset.load_comparison("runs/one")
        >>> list(saved.classes["class"].unique()) == pointset.load_dataset("shapes10", "test", 16).classes
        True
    """
    import pandas

    folder = Path(folder)
    if not (folder / "results.json").exists():
        raise PointsetError(f"{folder} has no results.json: give the folder of a finished comparison")
    runs = json.loads((folder / "results.json").read_text(encoding="utf-8"))["runs"]
    histories = [
        {name: run[name] for name in ("model", "points", "seed")} | row
        for run in runs
        for row in RunFolder(folder / "runs" / run["folder"]).history_if_any()
    ]
    files = (folder / name for name in ("classes.csv", PREDICTIONS_CSV))
    classes, predictions = (read_csv_table(file) if file.exists() else None for file in files)
    return SavedComparison(
        folder, read_csv_table(folder / "results.csv"), classes, predictions, pandas.DataFrame(histories)
    )


@dataclass(frozen=True)
class SavedEvaluation:
    """The frames of the predictions of one run."""

    folder: Path
    evaluation: Evaluation
    """The logits and labels, with all metrics."""

    @cached_property
    def predictions(self) -> "DataFrame":
        """A row for each test shape: item, label, prediction, and the probability of each class."""
        frame = read_tables([self.folder / PREDICTIONS_NPZ])[["item", "label", "prediction"]]
        shares = dict(zip(self.evaluation.classes, softmax(self.evaluation.logits, axis=1).T, strict=True))
        return frame.assign(**{f"probability_{name}": own for name, own in shares.items()})

    @cached_property
    def classes(self) -> "DataFrame":
        """A row for each class with test shapes: their number, and the accuracy on them."""
        import pandas

        accuracies = self.evaluation.per_class
        counts = self.predictions["label"].value_counts()[[*accuracies]]
        return pandas.DataFrame({"class": [*accuracies], "shapes": [*counts], "accuracy": [*accuracies.values()]})

    @cached_property
    def history(self) -> "DataFrame":
        """A row for each epoch of the training; empty if the folder has no history."""
        import pandas

        return pandas.DataFrame(RunFolder(self.folder).history_if_any())


def load_evaluation(run: str | Path) -> SavedEvaluation:
    """Read the predictions of a run back.

    Args:
        run: folder of a run of a comparison, which has predictions.npz.

    Returns:
        Its frames: predictions, classes and history.

    Raises:
        PointsetError: the folder has no predictions.
    """
    folder = Path(run)
    if not (folder / PREDICTIONS_NPZ).exists():
        raise PointsetError(f"{folder} has no {PREDICTIONS_NPZ}: give the folder of a run of a comparison")
    return SavedEvaluation(folder, load_predictions(folder))
