"""Warn of user-defined parts that are not functions of sets, which a table of results would not reveal."""

import math
import warnings

from pointset.comparison.experiment import Entry, Experiment
from pointset.errors import PointsetError
from pointset.evaluation.symmetry import check_symmetry
from pointset.zoo.carried import user_parts

MOST = 1e-2
"""Tolerated deviation, relative to the largest logit; rounding in float32 mostly stays below 1e-4."""
SIZES = (3, 7)
"""Sizes of the test sets; small, because the check runs at every start."""


def warn_of_order(experiment: Experiment) -> None:
    """Warn of every row with a user-defined part whose results depend on the order of elements or on padding."""
    for entry in experiment.models:
        said = _deviations(experiment, entry)
        if said:
            warnings.warn(
                f"{entry.label} is not a function of sets: its results depend on {said}; see pointset.check_symmetry",
                UserWarning,
                stacklevel=4,
            )


def _deviations(experiment: Experiment, entry: Entry) -> str:
    """The things that the outputs of an untrained model should not depend on but do, as text; empty if none."""
    task, options = experiment.task, entry.options(experiment.model)
    try:
        if not user_parts(task.zoo_name(entry.name), options):
            return ""
        found = check_symmetry(task.build(entry.name, options, 0, task.sizes[0]), sizes=SIZES)
    except PointsetError:  # the model cannot be built, which its runs will report
        return ""
    order = max(found.permutation, found.duplicates)
    names = {"the order of the elements": order, "padding": found.padding or 0.0}
    return " and ".join(f"{name} ({_format(apart)})" for name, apart in names.items() if apart > MOST)


def _format(deviation: float) -> str:
    return f"by {deviation:.0%}" if math.isfinite(deviation) else "they are not finite"
