"""Metrics: accuracy, calibration, robustness, costs, symmetry."""

from pointset.evaluation.corruptions import list_corruptions
from pointset.evaluation.predictions import Evaluation, PointEvaluation, evaluate, evaluate_points
from pointset.evaluation.robustness import Robustness, accuracy_by_size, corrupted_sets, robustness

__all__ = [
    "Evaluation",
    "PointEvaluation",
    "Robustness",
    "accuracy_by_size",
    "corrupted_sets",
    "evaluate",
    "evaluate_points",
    "list_corruptions",
    "robustness",
]
