"""Metrics of predicted numbers and their intervals."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.evaluation.predictions import check_evaluation, load_arrays, require_finite_outputs, save_arrays
from pointset.zoo.regressors import INTERVAL_LEVEL, Numbers, Regressor, predict_numbers

NUMBERS_FILE = "numbers.npz"
"""The predictions of a run of a comparison, in its folder."""


@dataclass(frozen=True, eq=False)
class NumberEvaluation:
    """Predicted numbers of a dataset beside the true ones, with metrics of each target.

    Example:
        >>> heights = pointset.from_arrays(X, np.ptp(X[..., 2], axis=1), target="height")
        >>> model = pointset.create_model("features-ridge", targets="height")
        >>> fitted = pointset.fit(model, heights, progress=False)
        >>> result = pointset.evaluate_numbers(model, heights, level=0.8)
        >>> list(result.r2), result.numbers.values.shape
        (['height'], (24, 1))
    """

    numbers: Numbers
    """The predictions, with their intervals."""
    truth: Float[ndarray, "shapes targets"]
    """The true numbers."""
    names: list[str]
    """Names of the shapes."""

    def __repr__(self) -> str:
        """What it is, in a line."""
        scores = ", ".join(f"R2 of {name} {value:.3f}" for name, value in self.r2.items())
        return f"NumberEvaluation of {len(self.truth):,} shapes: {scores}"

    @property
    def errors(self) -> Float[ndarray, "shapes targets"]:
        """Predicted minus true numbers."""
        return self.numbers.values - self.truth

    @property
    def r2(self) -> dict[str, float]:
        """Coefficient of determination: 1 minus the squared errors by those of the mean; NaN if all are equal."""
        apart = np.square(self.truth - self.truth.mean(axis=0)).sum(axis=0)
        return self._named(1 - np.square(self.errors).sum(axis=0) / np.where(apart > 0, apart, np.nan))

    @property
    def mae(self) -> dict[str, float]:
        """Mean absolute error, in the units of the target."""
        return self._named(np.abs(self.errors).mean(axis=0))

    @property
    def rmse(self) -> dict[str, float]:
        """Root of the mean squared error, in the units of the target."""
        return self._named(np.sqrt(np.square(self.errors).mean(axis=0)))

    @property
    def coverage(self) -> dict[str, float]:
        """Share of the shapes whose true number is in its interval, which should be near `numbers.level`."""
        inside = (self.numbers.low <= self.truth) & (self.truth <= self.numbers.high)
        return self._named(inside.mean(axis=0))

    @property
    def width(self) -> dict[str, float]:
        """Median length of the intervals, in the units of the target."""
        return self._named(np.median(self.numbers.high - self.numbers.low, axis=0))

    def summary(self) -> dict[str, Any]:
        """The metrics as plain data, for JSON."""
        metrics = {name: getattr(self, name) for name in ("r2", "mae", "rmse", "coverage", "width")}
        targets = {name: {key: by[name] for key, by in metrics.items()} for name in self.numbers.targets}
        return {"shapes": len(self.truth), "level": self.numbers.level, "targets": targets}

    def _named(self, values: ndarray) -> dict[str, float]:
        return dict(zip(self.numbers.targets, values.tolist(), strict=True))


def evaluate_numbers(
    model: nn.Module, data: PointSets, *, level: float = INTERVAL_LEVEL, batch_size: int = 64
) -> NumberEvaluation:
    """Evaluate a regressor on the fixed subsets of a dataset, on the device of the model.

    Args:
        model: a `Regressor`, see `create_model(..., targets=...)`.
        data: sets with the targets of the model; every shape is used once.
        level: of the intervals, in (0, 1).
        batch_size: shapes per forward pass; does not change the result beyond rounding.

    Returns:
        Predicted and true numbers of every shape, with metrics.

    Raises:
        PointsetError: the model classifies, or the data has other targets, or a prediction is not finite.

    Example:
        >>> heights = pointset.from_arrays(X, np.ptp(X[..., 2], axis=1), target="height")
        >>> model = pointset.create_model("features-ridge", targets="height")
        >>> fitted = pointset.fit(model, heights, progress=False)
        >>> pointset.evaluate_numbers(model, heights).r2["height"] > 0.5
        True
    """
    check_evaluation(model, data, batch_size)
    if not isinstance(model, Regressor):
        raise PointsetError("the model classifies: use pointset.evaluate")
    if data.targets is None or data.target_names != model.targets:
        got = ", ".join(data.target_names) or "classes"
        raise PointsetError(f"the model predicts {', '.join(model.targets)}, and the data has {got}: give other data")
    numbers = predict_numbers(model, data, level=level, batch_size=batch_size)
    require_finite_outputs(torch.from_numpy(numbers.values), data)
    return NumberEvaluation(numbers, data.targets.numpy(), list(data.names))


def save_numbers(evaluation: NumberEvaluation, folder: Path) -> None:
    """Save predictions, intervals, true values and names in the folder of a run."""
    numbers = evaluation.numbers
    ends = {"values": numbers.values, "low": numbers.low, "high": numbers.high}
    save_arrays(
        folder / NUMBERS_FILE, truth=evaluation.truth, **ends, names=evaluation.names, targets=list(numbers.targets)
    )


def load_numbers(folder: Path) -> NumberEvaluation:
    """Read what `save_numbers` wrote."""
    arrays = load_arrays(folder / NUMBERS_FILE)
    numbers = Numbers(
        tuple(arrays["targets"].tolist()), arrays["values"], arrays["low"], arrays["high"], INTERVAL_LEVEL
    )
    return NumberEvaluation(numbers, arrays["truth"], arrays["names"].tolist())
