"""Metrics: accuracy, calibration, robustness, costs, symmetry."""

from pointset.evaluation.corruptions import list_corruptions
from pointset.evaluation.predictions import Evaluation, evaluate
from pointset.evaluation.robustness import (
    Robustness,
    accuracy_by_size,
    corrupted_sets,
    evaluate_corrupted,
    robustness,
)

__all__ = [
    "Evaluation",
    "Robustness",
    "accuracy_by_size",
    "corrupted_sets",
    "evaluate",
    "evaluate_corrupted",
    "list_corruptions",
    "robustness",
]
