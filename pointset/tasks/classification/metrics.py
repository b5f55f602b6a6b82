"""The metrics of classifiers: a further metric is a further entry of `FURTHER`."""

from pointset.comparison.metric import Metric
from pointset.evaluation import Evaluation


def _accuracy(predictions: Evaluation) -> float:
    return predictions.accuracy


def _mean_class_accuracy(predictions: Evaluation) -> float:
    return predictions.mean_class_accuracy


def _loss(predictions: Evaluation) -> float:
    return predictions.loss


def _brier(predictions: Evaluation) -> float:
    return predictions.brier


def _ece(predictions: Evaluation) -> float:
    return predictions.calibration_error("width")


def _ece_of_equal_mass(predictions: Evaluation) -> float:
    return predictions.calibration_error("mass")


ACCURACY = Metric("accuracy", True, digits=1, share=True, head="accuracy %", measure=_accuracy)
FURTHER = {
    "mean-class accuracy": Metric(
        "mean_class_accuracy", True, 1, True, "mean-class %", detailed=False, measure=_mean_class_accuracy
    ),
    "log loss": Metric("loss", False, 3, head="log loss", spread=False, detailed=False, measure=_loss),
    "Brier score": Metric("brier", False, 3, head="Brier", spread=False, detailed=False, measure=_brier),
    "ECE": Metric("calibration_error", False, 1, True, "ECE %", spread=False, detailed=False, measure=_ece),
    "ECE of equal mass": Metric(
        "calibration_error_equal_mass",
        False,
        1,
        True,
        "ECE %, mass",
        spread=False,
        detailed=False,
        measure=_ece_of_equal_mass,
    ),
}
"""Metrics that can be shown besides the accuracy. ECE has 15 bins of equal width, or of equal mass."""
USUAL = ("mean-class accuracy", "log loss", "ECE")
BRIEF = ("ECE",)
"""Those of the usual metrics that are shown on a terminal; metrics chosen by the user are always shown."""
UNBALANCED = 1.5
"""The usual metrics include the mean-class accuracy if the largest test class has this many times the shapes of the
smallest."""
