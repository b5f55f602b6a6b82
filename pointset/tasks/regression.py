"""Numbers of shapes as a task: targets from a table beside a folder, errors on the whole test split."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from torch import nn

from pointset.baselines.models import NUMBER_BASELINES
from pointset.comparison.metric import Metric
from pointset.comparison.results import Results
from pointset.comparison.runs import Run
from pointset.data.mixing import recipe_augmentations
from pointset.errors import PointsetError
from pointset.evaluation.numbers import NUMBERS_FILE, evaluate_numbers, load_numbers, save_numbers
from pointset.tasks.shapes import ShapeTask
from pointset.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pointset.comparison.report.sections import Section

ERROR_DIGITS = 3
"""Digits of errors in tables."""
R2 = Metric("R2", higher_is_better=True, digits=3)
ERROR_CURVES_TEXT = "Lines are means over seeds, bands reach from the lowest to the highest; of standardised targets."
TRUTH_TEXT = "Predictions of the best model (first seed) for the test shapes, against the true values."


@dataclass(frozen=True, kw_only=True)
class ShapeRegression(ShapeTask):
    """Predict numbers of point sets: the columns `sets.target` of a table.

    One target is measured by its mean absolute error, in its units, and by R2; several by the mean of their R2, and
    each by both.
    """

    name: ClassVar[str] = "regression"
    baselines: ClassVar[Collection[str]] = NUMBER_BASELINES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sets.target:
            raise PointsetError("a regression needs a target: give --target, or target in [sets] of the file")

    @property
    def measured(self) -> Sequence[Metric]:
        targets = self.sets.target
        if len(targets) == 1:
            return [Metric("MAE", higher_is_better=False), R2]
        errors = [Metric(f"MAE {name}", higher_is_better=False, brief=False, detailed=False) for name in targets]
        return [R2, *errors, *(replace(R2, name=f"R2 {name}", detailed=False) for name in targets)]

    def shown_metrics(self, folder: Path) -> Sequence[Metric]:
        """The metrics with as many decimals as their errors need."""
        if not (folder / NUMBERS_FILE).exists():
            return self.measured
        mae = load_numbers(folder).mae
        errors = {f"MAE {name}": error for name, error in mae.items()}
        errors["MAE"] = next(iter(mae.values()))  # of a single target
        digits = {name: _decimals(error) for name, error in errors.items()}
        return [replace(metric, digits=digits.get(metric.name, metric.digits)) for metric in self.measured]

    def check(self, seeds: Sequence[int], recipe: Recipe) -> None:
        """Raise a PointsetError for unknown augmentations, or a loss that needs other models."""
        recipe_augmentations(recipe.augment)
        if recipe.loss == "gaussian":
            raise PointsetError("a comparison is of numbers without variances: choose another loss than gaussian")

    def test(self, run: Run, model: nn.Module) -> tuple[dict[str, float], int]:
        evaluation = evaluate_numbers(model, self.load("test", run.points))
        save_numbers(evaluation, run.folder)
        r2, mae = evaluation.r2, evaluation.mae
        if len(r2) == 1:
            metrics = {"MAE": next(iter(mae.values())), "R2": next(iter(r2.values()))}
        else:
            metrics = {"R2": float(np.mean([*r2.values()]))}
            metrics |= {f"MAE {name}": value for name, value in mae.items()}
            metrics |= {f"R2 {name}": value for name, value in r2.items()}
        return metrics, len(evaluation.truth)

    def scores(self, run: Run) -> np.ndarray:
        """The share of each test shape in the first metric, float [shapes]: their mean is the metric."""
        evaluation = load_numbers(run.folder)
        if len(self.sets.target) == 1:
            return np.abs(evaluation.errors)[:, 0]
        return (1 - np.square(evaluation.errors) / evaluation.truth.var(axis=0)).mean(axis=1)

    def chance(self, folder: Path) -> Mapping[str, float]:
        """The first metric of always predicting the median, or the mean, of the test shapes."""
        truth = load_numbers(folder).truth
        if truth.shape[1] > 1:
            return {"mean": 0.0}
        return {"median": float(np.abs(truth - np.median(truth)).mean())}

    def sections(self, results: Results) -> Iterator[Section]:
        """Learning curves, and predicted against true values."""
        from pointset.comparison.report.charts import learning_curves  # matplotlib, which training does not need
        from pointset.comparison.report.sections import Section

        columns = {"mae": "training error", "validation_r2": "validation R2"}
        yield Section(
            "Learning curves", ERROR_CURVES_TEXT, learning_curves(results, columns, float, "epochs"), "learning-curves"
        )
        (best,) = results.best(1)
        yield Section(f"Predicted and true, {best}", TRUTH_TEXT, _against_truth(results.first(best)), "truth")


def _decimals(error: float) -> int:
    """Decimals with which an error has `ERROR_DIGITS` digits."""
    return max(0, ERROR_DIGITS - 1 - math.floor(math.log10(error))) if 0 < error < math.inf else ERROR_DIGITS


def _against_truth(folder: Path) -> Figure:
    from pointset.viz.charts import label_axes, make_panels
    from pointset.viz.color import FAINT, INK

    evaluation = load_numbers(folder)
    figure, panels = make_panels(len(evaluation.numbers.targets), 3, 2.6)
    for axes, name, true, value in zip(
        panels, evaluation.numbers.targets, evaluation.truth.T, evaluation.numbers.values.T, strict=True
    ):
        ends = [min(true.min(), value.min()), max(true.max(), value.max())]
        axes.plot(ends, ends, color=FAINT, lw=1)
        axes.plot(true, value, ".", color=INK, ms=3)
        label_axes(axes, f"true {name}", "predicted")
    return figure
