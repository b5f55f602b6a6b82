"""The metrics of classifiers: a further metric is a further entry of `FURTHER`."""

from functools import partial
from operator import attrgetter, methodcaller

from pointset.comparison.metric import Metric

ACCURACY = Metric("accuracy", True, 1, share=True, head="accuracy %", measure=attrgetter("accuracy"))
_share = partial(Metric, digits=1, share=True, detailed=False)
_score = partial(Metric, higher_is_better=False, digits=3, spread=False, detailed=False)
_error = partial(_share, higher_is_better=False, spread=False)
FURTHER = {
    "mean-class accuracy": _share(
        "mean_class_accuracy", True, head="mean-class %", measure=attrgetter("mean_class_accuracy")
    ),
    "log loss": _score("loss", head="log loss", measure=attrgetter("loss")),
    "Brier score": _score("brier", head="Brier", measure=attrgetter("brier")),
    "ECE": _error("calibration_error", head="ECE %", measure=methodcaller("calibration_error", "width")),
    "ECE of equal mass": _error(
        "calibration_error_equal_mass", head="ECE %, mass", measure=methodcaller("calibration_error", "mass")
    ),
}
"""Metrics that can be shown besides the accuracy. ECE has 15 bins of equal width, or of equal mass."""
USUAL = ("mean-class accuracy", "log loss", "ECE")
BRIEF = ("ECE",)
"""Those of the usual metrics that are shown on a terminal; metrics chosen by the user are always shown."""
UNBALANCED = 1.5
"""The usual metrics include the mean-class accuracy if the largest test class has this many times the shapes of the
smallest."""
