"""One run of a classifier of shapes: trained on the training split, tested on the whole test split."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import nn

from pointset.comparison.metric import Metric
from pointset.comparison.prediction_tables import PREDICTIONS_CSV
from pointset.comparison.task import Setup, Trial
from pointset.data.dataset import load_split
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.evaluation.predictions import Evaluation, evaluate, load_predictions, save_predictions
from pointset.evaluation.robustness import ROBUSTNESS, robustness_of, write_robustness
from pointset.training.loop import Fitted, fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for, create_pretrained
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained
from pointset.zoo.transfer import start_from


@dataclass(frozen=True)
class ShapeTrial(Trial):
    """A run of `Classification`."""

    setup: Setup
    data: str
    sets: DataOptions
    """Options of the sets, with their size."""
    metrics: Sequence[Metric]
    """All metrics, the last of which is for ordered classes."""
    robust: bool
    """Test on corrupted and smaller sets too."""
    named_sizes: bool
    """Name the size as the data set of the predictions."""

    @cached_property
    def train_sets(self) -> PointSets:
        """The training split."""
        return load_quietly(self.data, "train", self.sets)

    @cached_property
    def test_sets(self) -> PointSets:
        """The test split."""
        return load_quietly(self.data, "test", self.sets)

    def train(self, recipe: Recipe) -> Fitted:
        """Train on the training split; the seed determines weights, order, subsets, augmentation and dropout."""
        setup, train = self.setup, self.train_sets
        model = make_model(setup.model, train, setup.options, setup.seed)
        return fit(model, train, recipe, seed=setup.seed, run=setup.folder, progress=False)

    def test(self, model: nn.Module, recipe: Recipe) -> tuple[dict[str, float], int]:
        """Save the predictions on every test shape, and errors on corrupted and smaller sets; return the metrics."""
        evaluation = evaluate(model, self.test_sets)
        save_predictions(evaluation, self.setup.folder)
        if not self.is_tested:
            write_robustness(self.setup.folder, model, self.test_sets, self.sets.points)
        self.__dict__["predictions"] = evaluation
        measured = self.metrics if recipe.ordered else self.metrics[:-1]
        metrics = {metric.name: metric.measure(evaluation) for metric in measured if metric.measure}
        return metrics, len(evaluation.labels)

    @property
    def is_tested(self) -> bool:
        """True if robustness is not requested for this run, or is already saved."""
        return not self.robust or (self.setup.folder / ROBUSTNESS).exists()

    @cached_property
    def predictions(self) -> Evaluation:
        """The predictions that are saved in the folder."""
        return load_predictions(self.setup.folder)

    def scores(self, metrics: Mapping[str, float]) -> np.ndarray:
        """True for each test shape that is classified correctly."""
        return self.predictions.right

    def tables(self, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The rows of classes.csv, predictions.csv, and robustness.csv if there were corrupted and smaller sets.

        In classes.csv, `shapes` is the number of test shapes of a class. In robustness.csv, `test` is a corruption and
        `level` its severity (0 for clean sets); or `test` is "points" and `level` the number of points.
        """
        run = self.predictions
        counts = dict(zip(run.classes, np.bincount(run.labels, minlength=len(run.classes)).tolist(), strict=True))
        classes = [
            {**columns, "class": name, "shapes": counts[name], "accuracy": accuracy}
            for name, accuracy in run.per_class.items()
        ]
        place = {"model": columns["model"], "seed": columns["seed"]}
        if self.named_sizes:
            place["data"] = f"{columns['points']} points"
        answers = zip(run.names, run.labels, run.predictions, strict=True)
        predictions = [
            {"item": item, "label": run.classes[label], "prediction": run.classes[predicted], **place}
            for item, label, predicted in answers
        ]
        errors: list[tuple[str, int, float]] = []
        for tested in robustness_of({0: self.setup.folder}).values():
            errors += [("clean", 0, tested.clean_error)]
            errors += [(name, level, error) for name, of in tested.errors.items() for level, error in of.items()]
            errors += [("points", size, 1.0 - accuracy) for size, accuracy in tested.by_size.items()]
        robustness = [{**columns, "test": test, "level": level, "error": error} for test, level, error in errors]
        return {"classes.csv": classes, PREDICTIONS_CSV: predictions} | (
            {"robustness.csv": robustness} if robustness else {}
        )


def load_quietly(data: str, split: str, options: DataOptions) -> PointSets:
    """Load one split without warnings, which preparing it has already shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return load_split(data, split, options, progress=False)


def make_model(name: str, sets: PointSets, options: ModelOptions, seed: int) -> nn.Module:
    """A zoo model for the classes of sets; a trained model, by its whole name, keeps its own options."""
    if name in list_pretrained():
        return start_from(create_pretrained(name), sets, seed=seed, start=name)
    return create_for(sets, name, options, seed=seed)
