"""Temperature scaling of a trained run, on its validation split."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from pointset.data.loading import is_in_memory, load_like
from pointset.errors import PointsetError
from pointset.evaluation.calibration import Objective, fit_temperature
from pointset.evaluation.predictions import evaluate


def validation_temperature(
    model: nn.Module, description: Mapping[str, Any], objective: Objective = "log-loss"
) -> float:
    """The temperature that fits the validation split of a run best; see `fit_temperature`.

    Args:
        model: the run's, trained.
        description: what `load_run` gives beside it.
        objective: "log-loss", or "ece" for the expected calibration error.

    Raises:
        PointsetError: the run has no validation split, or its training data is missing or has changed.
    """
    share = description["recipe"]["validation"]
    if share == 0.0:
        raise PointsetError("the run has no validation split to calibrate on: train with --validation 0.1, for example")
    if is_in_memory(description["data"]):
        raise PointsetError(
            "the run was trained on data in memory, which is not saved with it, and calibration needs its validation "
            "shapes: in Python, evaluate on held-out shapes of your own and pass the logits to fit_temperature"
        )
    train = load_like(description["data"], "train")
    if train.describe()["fingerprint"] != description["data"]["fingerprint"]:
        raise PointsetError(
            f"the training data of the run in {description['data']['source']} has changed: restore it, or train again"
        )
    held_out = evaluate(model, train.split_validation(share, description["seed"])[1])
    return fit_temperature(held_out.logits, held_out.labels, objective)
