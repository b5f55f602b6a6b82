"""Classification of point sets as a task: one dataset, one or several set sizes, and the whole test split."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.baselines.models import BASELINES
from pointset.comparison.metric import Metric
from pointset.comparison.predictions import PREDICTIONS_CSV
from pointset.comparison.results import Results
from pointset.comparison.runs import Run
from pointset.configuration import PointCount, Seed, check
from pointset.data.mixing import recipe_augmentations
from pointset.errors import PointsetError
from pointset.evaluation.predictions import PREDICTIONS, evaluate, load_predictions, save_predictions
from pointset.evaluation.robustness import ROBUSTNESS, robustness_of, write_robustness
from pointset.tasks.shapes import ShapeTask
from pointset.training.recipe import Recipe

if TYPE_CHECKING:
    from pointset.comparison.report.sections import Section

ACCURACY = Metric("accuracy", True, 1, share=True, head="accuracy %", measure=attrgetter("accuracy"))
_share = partial(Metric, digits=1, share=True, detailed=False)
_score = partial(Metric, higher_is_better=False, digits=3, spread=False, detailed=False, brief=False)
_error = partial(_share, higher_is_better=False, spread=False)
MEAN_CLASS = _share(
    "mean_class_accuracy", True, head="mean-class %", brief=False, measure=attrgetter("mean_class_accuracy")
)
METRICS = (
    ACCURACY,
    MEAN_CLASS,
    _score("loss", head="log loss", measure=attrgetter("loss")),
    _score("brier", head="Brier", measure=attrgetter("brier"), shown=False),
    _error("calibration_error", head="ECE %", measure=methodcaller("calibration_error", "width")),
    _error(
        "calibration_error_equal_mass",
        head="ECE %, mass",
        measure=methodcaller("calibration_error", "mass"),
        shown=False,
    ),
    Metric("rank_error", False, 3, head="rank error", detailed=False, measure=attrgetter("rank_error")),
)
"""All metrics; ECE has 15 bins of equal width, or of equal mass. The last is for ordered classes, see `Recipe`."""
UNBALANCED = 1.5
"""Tables show the mean-class accuracy if the largest test class has this many times the shapes of the smallest."""


@dataclass(frozen=True, kw_only=True)
class Classification(ShapeTask):
    """Predict the class of a point set; the models are those of the zoo."""

    robustness_seeds: tuple[int, ...] = ()
    """Seeds whose models are also tested on corrupted and on smaller sets."""
    robustness_points: tuple[int, ...] = ()
    """Set sizes of these models; empty means all sizes."""

    name: ClassVar[str] = "classification"
    TUPLES: ClassVar[tuple[str, ...]] = ("points", "robustness_seeds", "robustness_points")
    baselines: ClassVar[Collection[str]] = BASELINES

    def __post_init__(self) -> None:
        super().__post_init__()
        check("robustness_seeds", self.robustness_seeds, tuple[Seed, ...])
        check("robustness_points", self.robustness_points, tuple[PointCount, ...])
        if unknown := set(self.robustness_points) - set(self.points):
            raise PointsetError(
                f"robustness_points must be among the points {list(self.points)}, got {sorted(unknown)}"
            )

    @property
    def measured(self) -> Sequence[Metric]:
        return METRICS

    def shown_metrics(self, folder: Path) -> Sequence[Metric]:
        """The metrics as tables show them: mean-class accuracy beside accuracy if the test classes are unbalanced."""
        if not (folder / PREDICTIONS).exists():
            return METRICS
        counts = np.unique(load_predictions(folder).labels, return_counts=True)[1]
        unbalanced = bool(counts.max() > UNBALANCED * counts.min())
        mean_class = replace(MEAN_CLASS, shown=unbalanced, brief=unbalanced)
        return [mean_class if metric == MEAN_CLASS else metric for metric in METRICS]

    def check(self, seeds: Sequence[int], recipe: Recipe) -> None:
        """Raise a PointsetError for unknown robustness seeds or augmentations, or robustness of sets with features."""
        if unknown := set(self.robustness_seeds) - set(seeds):
            raise PointsetError(f"robustness_seeds must be among the seeds {list(seeds)}, got {sorted(unknown)}")
        recipe_augmentations(recipe.augment)
        if self.robustness_seeds and self.sets.features:
            raise PointsetError(
                "robustness_seeds must be empty where sets have features: corruptions are defined for coordinates alone"
            )

    def with_seeds(self, seeds: Sequence[int]) -> Self:
        return replace(self, robustness_seeds=tuple(seed for seed in self.robustness_seeds if seed in seeds))

    def test(self, run: Run, model: nn.Module) -> tuple[dict[str, float], int]:
        evaluation = evaluate(model, self.load("test", run.points))
        save_predictions(evaluation, run.folder)
        measured = METRICS if run.experiment.recipe.ordered else METRICS[:-1]
        metrics = {metric.name: metric.measure(evaluation) for metric in measured if metric.measure}
        return metrics, len(evaluation.labels)

    def is_tested(self, run: Run) -> bool:
        """True if robustness is not requested for this run, or is already saved."""
        requested = run.seed in self.robustness_seeds and run.points in (self.robustness_points or self.points)
        return not requested or (run.folder / ROBUSTNESS).exists()

    def test_further(self, run: Run, model: nn.Module) -> None:
        write_robustness(run.folder, model, self.load("test", run.points), self.sets_of(run.points).points)

    def scores(self, run: Run) -> np.ndarray:
        """True for each test shape that is classified correctly."""
        return load_predictions(run.folder).right

    def sections(self, results: Results) -> Iterator[Section]:
        """Learning curves, smaller and corrupted sets, calibration, classes, mistakes."""
        from pointset.tasks.classification_report import sections  # matplotlib and scipy, which training does not need

        return sections(results, partial(self.load, "test", results.points))

    def chance(self, folder: Path) -> Mapping[str, float]:
        """The accuracies of uniform guessing and of always predicting the most frequent class of the test set."""
        run = load_predictions(folder)
        counts = np.bincount(run.labels)
        return {"chance": 1.0 / len(run.classes), "majority": float(counts.max() / counts.sum())}

    def tables(self, folder: Path, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The rows of classes.csv, predictions.csv, and robustness.csv if there were corrupted and smaller sets.

        In classes.csv, `shapes` is the number of test shapes of a class. In robustness.csv, `test` is a corruption and
        `level` its severity (0 for clean sets); or `test` is "points" and `level` the number of points.
        """
        run = load_predictions(folder)
        counts = dict(zip(run.classes, np.bincount(run.labels, minlength=len(run.classes)).tolist(), strict=True))
        classes = [
            {**columns, "class": name, "shapes": counts[name], "accuracy": accuracy}
            for name, accuracy in run.per_class.items()
        ]
        errors: list[tuple[str, int, float]] = []
        for tested in robustness_of({0: folder}).values():
            errors += [("clean", 0, tested.clean_error)]
            errors += [(name, level, error) for name, of in tested.errors.items() for level, error in of.items()]
            errors += [("points", size, 1.0 - accuracy) for size, accuracy in tested.by_size.items()]
        robustness = [{**columns, "test": test, "level": level, "error": error} for test, level, error in errors]
        place = {"model": columns["model"], "seed": columns["seed"]}
        if len(self.points) > 1:
            place["data"] = f"{columns['points']} points"
        answers = zip(run.names, run.labels, run.predictions, strict=True)
        predictions = [
            {"item": item, "label": run.classes[label], "prediction": run.classes[predicted], **place}
            for item, label, predicted in answers
        ]
        return {"classes.csv": classes, PREDICTIONS_CSV: predictions} | (
            {"robustness.csv": robustness} if robustness else {}
        )
