"""Metrics: accuracy, calibration, robustness, costs, symmetry."""

from pointset.evaluation.corruptions import list_corruptions
from pointset.evaluation.predictions import Evaluation, evaluate
from pointset.evaluation.robustness import Robustness, accuracy_by_size, corrupted_sets, robustness

__all__ = [
    "Evaluation",
    "Robustness",
    "accuracy_by_size",
    "corrupted_sets",
    "evaluate",
    "list_corruptions",
    "robustness",
]
