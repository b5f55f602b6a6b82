"""Metrics of labels per point: every labelled point of every shape counts once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import nn

from pointset.data.dataset import PointSets
from pointset.data.loading import with_point_classes
from pointset.data.point_labels import UNLABELLED
from pointset.errors import PointsetError
from pointset.evaluation.predictions import Evaluation, check_evaluation, require_finite
from pointset.zoo.predicting import predict_points


@dataclass(frozen=True, eq=False, repr=False)
class PointEvaluation(Evaluation):
    """Predictions for the labelled points of a dataset, with metrics; the points of all shapes, one after the other.

    The intersection over union of a class is TP / (TP + FP + FN), over the points of all shapes.

    Example:
        >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]], dtype=np.float32)
        >>> result = pointset.evaluation.PointEvaluation(logits, np.array([0, 1, 1]), ["seat", "leg"])
        >>> result.iou, result.mean_iou
        ({'seat': 0.5, 'leg': 0.5}, 0.5)
    """

    @property
    def iou(self) -> dict[str, float]:
        """Intersection over union of each class that occurs among the labels or the predictions."""
        return intersection_over_union(self.confusion, self.classes)

    @property
    def mean_iou(self) -> float:
        """Mean of `iou`: every class counts the same."""
        return float(np.mean(list(self.iou.values())))

    def summary(self) -> dict[str, Any]:
        """The metrics as plain data, for JSON."""
        metrics = super().summary()
        points = {"shapes": len(self.names), "points": metrics.pop("shapes"), "accuracy": metrics.pop("accuracy")}
        return {**points, "mean_iou": self.mean_iou, **metrics, "iou": self.iou}


def intersection_over_union(confusion: Int[ndarray, "classes classes"], classes: Sequence[str]) -> dict[str, float]:
    """TP / (TP + FP + FN) of each class that occurs, from counts with true classes as rows."""
    both = confusion.diagonal()
    either = confusion.sum(axis=0) + confusion.sum(axis=1) - both
    return {classes[row]: float(both[row] / either[row]) for row in either.nonzero()[0]}


def evaluate_points(model: nn.Module, data: PointSets, *, batch_size: int = 64) -> PointEvaluation:
    """Evaluate a network that labels every point on the fixed subsets of a dataset, on the device of the model.

    Args:
        model: called as `model(points [B, n, d], mask) -> logits [B, n, classes]`.
        data: sets with labels per point, whose classes are matched to those of the model by name.
        batch_size: shapes per forward pass; does not change the result beyond rounding.

    Returns:
        Logits and labels of every labelled point, with metrics.

    Raises:
        PointsetError: the data has no labels per point, labels that the model does not know or other `inputs`, or a
            shape's logits are not finite.

    Example:
        >>> segmenter = pointset.create_segmenter("rff-max", classes=2, dim=8)
        >>> try:
        ...     pointset.evaluation.evaluate_points(segmenter, test)
        ... except pointset.PointsetError as error:
        ...     print("labels" in str(error))
        True
    """
    check_evaluation(model, data, batch_size)
    classes = getattr(model, "classes", None) or data.point_classes
    if list(classes) != data.point_classes:
        data = with_point_classes(data, classes)
    logits, labels = predict_points(model, data, batch_size=batch_size), data.point_labels
    if logits[0].shape[1] != len(data.point_classes):
        raise PointsetError(
            f"the model has {logits[0].shape[1]} classes and the points of {data.name} have "
            f"{len(data.point_classes)}: evaluate on the dataset it was trained for"
        )
    require_finite(logits, data)
    truth = labels.flatten() if data.mask is None else labels[data.mask]
    labelled = truth != UNLABELLED
    kept = torch.cat(logits).cpu()[labelled].numpy()
    return PointEvaluation(kept, truth[labelled].numpy(), list(data.point_classes), list(data.names))
