"""Predictions of a classifier and their metrics. Means are over shapes, not over batches."""

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import nn
from torch.nn.functional import cross_entropy

from pointset.configuration import Count, Positive, check
from pointset.data.catalogue.cards import is_on_disk
from pointset.data.catalogue.locate import require_classes
from pointset.data.dataset import PointSets
from pointset.data.reload import load_like
from pointset.errors import PointsetError, quoted
from pointset.evaluation.calibration import Edges, Objective, brier_score, fit_temperature, reliability
from pointset.inputs import require_model
from pointset.runs import records
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import Prediction, predict

PREDICTIONS = "predictions.npz"
"""File with the predictions of a comparison's run, in the run's folder."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions of a model on a dataset, with metrics.

    Example:
        >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]], dtype=np.float32)
        >>> result = pointset.evaluation.Evaluation(logits, np.array([0, 1, 1]), ["flat", "round"])
        >>> result.predictions.tolist(), round(result.accuracy, 3), result.per_class
        ([0, 1, 0], 0.667, {'flat': 1.0, 'round': 0.5})
    """

    logits: Float[ndarray, "shapes classes"]
    """Logits of the model, before any softmax."""
    labels: Int[ndarray, " shapes"]
    """Indices of the true classes in `classes`."""
    classes: list[str]
    """Names of the classes, in the order of the logits."""
    names: list[str] = field(default_factory=list)
    """Names of the shapes; empty if unknown."""
    prediction: Prediction | None = None
    """The evaluated prediction, with temperature and distances; None if only the logits are known."""

    def __repr__(self) -> str:
        """Return numbers of shapes and classes, and the accuracy, in one line."""
        counts = f"{len(self.labels):,} shapes of {len(self.classes)} classes"
        return f"Evaluation of {counts}" + (f": accuracy {100 * self.accuracy:.1f} %" if len(self.labels) else "")

    @property
    def predictions(self) -> Int[ndarray, " shapes"]:
        """For each shape, the index of the class with the largest logit."""
        return self.logits.argmax(axis=1)

    @property
    def accuracy(self) -> float:
        """Overall accuracy: share of all shapes that are classified correctly."""
        return float(self.right.mean())

    @property
    def per_class(self) -> dict[str, float]:
        """Recall of each class: the share of its shapes predicted correctly. Classes without shapes are left out."""
        every = self.logits.shape[1]
        shapes, right = np.bincount(self.labels, minlength=every), np.bincount(self.labels[self.right], minlength=every)
        return {self.classes[label]: float(right[label] / shapes[label]) for label in shapes.nonzero()[0]}

    @property
    def mean_class_accuracy(self) -> float:
        """Mean of `per_class`: every class counts the same."""
        return float(np.mean(list(self.per_class.values())))

    @property
    def rank_error(self) -> float:
        """Mean absolute difference between the ranks of the predicted and the true class, for ordered classes."""
        return float(np.abs(self.predictions - self.labels).mean())

    @property
    def right(self) -> Bool[ndarray, " shapes"]:
        """True for each shape that is classified correctly."""
        return self.predictions == self.labels

    @property
    def loss(self) -> float:
        """Cross entropy in nats."""
        logits, labels = (torch.from_numpy(part) for part in (self.logits.astype(np.float64), self.labels))
        return cross_entropy(logits, labels.long()).item()

    @property
    def brier(self) -> float:
        """Brier score; see `brier_score`."""
        return brier_score(self.logits, self.labels)

    @property
    def confusion(self) -> Int[ndarray, "classes classes"]:
        """Confusion matrix: how many shapes of each class (row) were predicted as each class (column)."""
        from sklearn.metrics import confusion_matrix

        return confusion_matrix(self.labels, self.predictions, labels=np.arange(len(self.classes)))

    def calibration_error(self, edges: Edges = "width") -> float:
        """Return the expected calibration error over 15 bins of equal width, or of equal mass; see `reliability`."""
        return reliability(self.logits, self.labels, edges).error

    def at_temperature(self, temperature: float) -> "Evaluation":
        """Return the same predictions with logits / temperature. The accuracy does not change."""
        check("temperature", temperature, Positive)
        # In double precision, different logits of single precision stay different.
        return Evaluation(self.logits.astype(np.float64) / temperature, self.labels, self.classes, self.names)

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain data, for JSON."""
        return {
            "shapes": len(self.labels),
            "accuracy": self.accuracy,
            "mean_class_accuracy": self.mean_class_accuracy,
            "loss": self.loss,
            "brier": self.brier,
            "calibration_error": self.calibration_error("width"),
            "calibration_error_equal_mass": self.calibration_error("mass"),
            "per_class": self.per_class,
        }


def evaluate(model: nn.Module, data: PointSets, *, batch_size: int = 64) -> Evaluation:
    """Evaluate a classifier on the fixed point sets of a dataset, on the device of the model.

    Args:
        model: called as `model(points [B, n, d], mask) -> logits [B, classes]`. The training mode is restored.
        data: the dataset. Each shape is used once, with the same points in every call.
        batch_size: number of shapes per forward pass, which only changes rounding errors.

    Returns:
        Logits and labels of every shape, with metrics.

    Raises:
        PointsetError: if the model's `inputs` differ from `data.inputs`; if the model's classes, or their order, differ
            from those of the data; if the logits of a shape are not finite.

    Example:
        >>> result = pointset.evaluate(model, test)
        >>> result.logits.shape
        (8, 2)
    """
    require_model(model)
    check("data", data, PointSets)
    if isinstance(known := getattr(model, "classes", None), list):  # labels are indices of classes
        remedy = "give data with the same classes, as pointset.from_arrays(X, y, model.classes) does"
        require_classes(data.classes, known, data.name or "the data", "the model", remedy)
    warn_of_preparation(model, data)
    return evaluate_in_training(model, data, batch_size=batch_size)


def warn_of_preparation(model: nn.Module, data: PointSets) -> None:
    """Warn if sets have another normalisation or upward axis than the model's training sets."""
    has_preparation = model.has_preparation if isinstance(model, Classifier) else hasattr(model, "preparation")
    if not has_preparation and data.options.normalize != "none":
        warnings.warn(
            f"the model has no preparation, and the sets have normalize={data.options.normalize!r}: if it was trained "
            "so, set model.preparation = train.preparation; otherwise load the data with normalize='none'",
            UserWarning,
            stacklevel=3,
        )
    if not (isinstance(model, Classifier) and model.classes):
        return
    for name, own in (("normalize", data.options.normalize), ("up", data.up)):
        trained = getattr(model.preparation, name)
        if trained.removeprefix("center-") != own.removeprefix("center-"):
            text = f"{data.name or 'the data'} has {name}={own!r}, and the model was trained with {trained!r}"
            warnings.warn(f"{text}: load it with {name}={trained!r}", UserWarning, stacklevel=3)


def evaluate_in_training(model: nn.Module, data: PointSets, *, batch_size: int = 64) -> Evaluation:
    """Evaluate a model whose `classes` are not set yet, or are those of an earlier training."""
    check("batch_size", batch_size, Count)
    if not len(data):
        raise PointsetError(f"{data.name or 'the data'} has no shape to evaluate on")
    data.require_inputs(model)
    prediction = predict(model, data, batch_size=batch_size)
    if prediction.logits.shape[1] != len(data.classes):
        raise PointsetError(
            f"the model has {prediction.logits.shape[1]} classes and {data.name} has {len(data.classes)}: "
            "evaluate on the dataset it was trained for"
        )
    for name, row in zip(data.names, prediction.logits, strict=True):
        if not row.isfinite().all():
            fault = data.point_cache.fault(data.rows.tolist(), data.options.normalize)
            cause = fault or "check whether the weights are finite"
            raise PointsetError(f"the model's output for shape {quoted(name)} is not finite: {cause}")
    logits = prediction.logits.cpu().numpy()
    return Evaluation(logits, data.labels.numpy(), list(data.classes), list(data.names), prediction)


def validation_temperature(
    model: nn.Module, description: Mapping[str, Any], objective: Objective = "log loss"
) -> float:
    """Return the temperature fitted on the validation split of a run; see `fit_temperature`."""
    data, rows = description["data"], description.get("validation")
    if rows is None:
        raise PointsetError("the run has no validation split to calibrate on: train MODEL with --validation 0.1")
    if not is_on_disk(data["source"]):
        raise PointsetError(
            "the run was trained on data in memory: in Python, evaluate the model on your validation shapes, and pass "
            "the logits to fit_temperature"
        )
    train = load_like(data, "train")
    if train.describe()["fingerprint"] != data["fingerprint"]:
        raise PointsetError(f"the training data of the run in {data['source']} has changed: restore it, or train again")
    held_out = evaluate(model, train.subset(torch.tensor(rows)))
    groups = train.grouping.groups[rows] if train.grouping else None
    return fit_temperature(held_out.logits, held_out.labels, objective, groups)


def save_predictions(evaluation: Evaluation, folder: Path) -> None:
    """Save logits, labels, and the names of shapes and classes in the folder of a run."""
    stream = io.BytesIO()
    arrays: dict[str, Any] = {name: getattr(evaluation, name) for name in ("logits", "labels", "names", "classes")}
    np.savez(stream, **arrays)
    records.write(folder / PREDICTIONS, stream.getvalue())


def load_predictions(folder: Path) -> Evaluation:
    """Read an evaluation that `save_predictions` has saved."""

    def parse(content: bytes) -> Evaluation:
        with np.load(io.BytesIO(content), allow_pickle=False) as saved:
            return Evaluation(saved["logits"], saved["labels"], saved["classes"].tolist(), saved["names"].tolist())

    remedy = f"delete {folder / 'result.json'} and run the same command again to test the model again"
    return records.parse(folder / PREDICTIONS, parse, "the predictions of a run", remedy)
