"""Metrics of predictions: accuracy, calibration, robustness to corruptions, symmetry, costs."""

from pointset.evaluation.calibration import Reliability, brier_score, fit_temperature, probabilities, reliability
from pointset.evaluation.corruptions import CORRUPTIONS, Corruption, corrupt, list_corruptions
from pointset.evaluation.costs import Cost, measure_costs
from pointset.evaluation.predictions import Evaluation, evaluate
from pointset.evaluation.robustness import Robustness, accuracy_by_size, corrupted_sets, robustness, robustness_table
from pointset.evaluation.shape_files import embed
from pointset.evaluation.symmetry import Symmetry, check_symmetry

__all__ = [
    "CORRUPTIONS",
    "Corruption",
    "Cost",
    "Evaluation",
    "Reliability",
    "Robustness",
    "Symmetry",
    "accuracy_by_size",
    "brier_score",
    "check_symmetry",
    "corrupt",
    "corrupted_sets",
    "embed",
    "evaluate",
    "fit_temperature",
    "list_corruptions",
    "measure_costs",
    "probabilities",
    "reliability",
    "robustness",
    "robustness_table",
]
