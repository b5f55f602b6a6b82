"""Classification of point sets as a task: one dataset, one or several set sizes, and the whole test split."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.baselines.models import BASELINES
from pointset.comparison.experiment import TomlTable, as_tuple
from pointset.comparison.metric import Metric, Size
from pointset.comparison.rank import PREDICTIONS_CSV
from pointset.comparison.ranking import ACCURACY
from pointset.comparison.task import Results, Section, TaskFacts, Trial
from pointset.configuration import PointCount, Seed, check, check_once
from pointset.data.augmentations import recipe_augmentations
from pointset.data.dataset import load_split
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError, raise_together
from pointset.evaluation.predictions import Evaluation, evaluate, load_predictions, save_predictions
from pointset.evaluation.robustness import ROBUSTNESS, robustness_of, write_robustness
from pointset.training.fitting import fit
from pointset.training.loop import Fitted
from pointset.training.objectives import require_classes, require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained


@dataclass(frozen=True)
class ShapeTrial(Trial):
    """A run of `Classification`."""

    task: "Classification"

    @cached_property
    def test_sets(self) -> PointSets:
        """The test split."""
        return self.task.load("test", self.size)

    def train(self, recipe: Recipe) -> Fitted:
        """Train on the training split; the seed determines weights, order, subsets, augmentation and dropout."""
        train = self.task.load("train", self.size)
        model = make_model(self.model, train, self.options, self.seed)
        return fit(model, train, recipe, seed=self.seed, run=self.folder, progress=False)

    def test(self, model: nn.Module, recipe: Recipe) -> tuple[dict[str, float], int]:
        """Save the predictions on every test shape, and errors on corrupted and smaller sets; return the metrics."""
        evaluation = evaluate(model, self.test_sets)
        save_predictions(evaluation, self.folder)
        if not self.is_tested:
            write_robustness(self.folder, model, self.test_sets)
        values = evaluation.summary() | ({"rank_error": evaluation.rank_error} if recipe.ordered else {})
        metrics = {metric.name: values[metric.name] for metric in METRICS if metric.name in values}
        return metrics, len(evaluation.labels)

    @property
    def is_tested(self) -> bool:
        """True if robustness is not requested for this run, or is already saved."""
        return self.seed not in self.task.robustness_seeds or (self.folder / ROBUSTNESS).exists()

    @cached_property
    def predictions(self) -> Evaluation:
        """The predictions that are saved in the folder."""
        return load_predictions(self.folder)

    def scores(self, metrics: Mapping[str, float]) -> np.ndarray:
        """True for each test shape that is classified correctly."""
        return self.predictions.right

    def tables(self, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of classes.csv, predictions.csv, and robustness.csv if there were corrupted and smaller sets.

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
        if len(self.task.points) > 1:
            place["data"] = f"{columns['points']} points"
        answers = zip(run.names, run.labels, run.predictions, strict=True)
        predictions = [
            {"item": item, "label": run.classes[label], "prediction": run.classes[predicted], **place}
            for item, label, predicted in answers
        ]
        errors: list[tuple[str, int, float]] = []
        for tested in robustness_of({0: self.folder}).values():
            errors += [("clean", 0, tested.clean_error)]
            errors += [(name, level, error) for name, of in tested.errors.items() for level, error in of.items()]
            errors += [("points", size, 1.0 - accuracy) for size, accuracy in tested.by_size.items()]
        robustness = [{**columns, "test": test, "level": level, "error": error} for test, level, error in errors]
        return {"classes.csv": classes, PREDICTIONS_CSV: predictions} | (
            {"robustness.csv": robustness} if robustness else {}
        )


def make_model(name: str, sets: PointSets, options: ModelOptions, seed: int) -> nn.Module:
    """Return a zoo model for the classes of sets; a trained model, by its whole name, keeps its own options."""
    return create_for(sets, name, None if name in list_pretrained() else options, seed=seed)


_share = partial(Metric, digits=1, share=True, detailed=False)
_score = partial(Metric, higher_is_better=False, digits=3, spread=False, detailed=False, brief=False)
_error = partial(_share, higher_is_better=False, spread=False)
MEAN_CLASS = _share("mean_class_accuracy", True, head="mean-class %", brief=False)
METRICS = (
    ACCURACY,
    MEAN_CLASS,
    _score("loss", head="log loss"),
    _score("brier", head="Brier", shown=False),
    _error("calibration_error", head="ECE %"),
    _error("calibration_error_equal_mass", head="ECE %, equal mass", shown=False),
    Metric("rank_error", False, 3, head="rank error", detailed=False),
)
"""All metrics; ECE has 15 bins of equal width, or of equal mass. The last is for ordered classes, see `Recipe`."""
UNBALANCED = 1.5
"""Tables show the mean-class accuracy if the largest test class has this many times the shapes of the smallest."""


@dataclass(frozen=True, kw_only=True)
class Classification:
    """Predict the class of a point set; the models are those of the zoo."""

    data: str = "shapes10"
    """The name of a dataset card, or a folder."""
    points: tuple[int, ...] = (1024,)
    """Set sizes."""
    sets: DataOptions = field(default_factory=DataOptions)
    """Options of the sets; their size is ignored."""
    robustness_seeds: tuple[int, ...] = ()
    """Seeds whose models are also tested on corrupted and on smaller sets."""

    name: ClassVar[str] = "classification"
    TUPLES: ClassVar[tuple[str, ...]] = ("points", "robustness_seeds")
    """Fields that are tuples, for which a file has lists."""

    def __post_init__(self) -> None:
        check("data", self.data, str)
        if not self.data.strip():
            raise PointsetError("data is empty: give the name of a dataset, or a folder")
        check("points", self.points, tuple[PointCount, ...])
        if not self.points:
            raise PointsetError("points must contain at least one set size, got none")
        check_once("size", self.points)
        check("robustness_seeds", self.robustness_seeds, tuple[Seed, ...])
        if self.robustness_seeds and self.sets.features:
            raise PointsetError(
                "robustness_seeds must be empty where sets have features: corruptions are defined for coordinates alone"
            )

    @classmethod
    def from_file(cls, options: Mapping[str, Any]) -> Self:
        """Make a task from options as written in a file."""
        fields = dict(options)
        check("sets", fields.get("sets", {}), TomlTable)
        if "points" in fields.get("sets", {}):
            raise PointsetError("sets.points is not allowed: give set sizes as points, beside models")
        for name in set(cls.TUPLES) & fields.keys():
            fields[name] = as_tuple(fields[name])
        if "sets" in fields:
            fields["sets"] = DataOptions.from_dict(fields["sets"])
        return cls(**fields)

    @property
    def facts(self) -> TaskFacts:
        """The options that determine the data are its name and those of the sets, without the size."""
        sets = self.sets.as_dict()
        del sets["points"]
        return TaskFacts(
            name=self.name,
            title=f"{Path(self.data).name}, {' / '.join(map(str, self.points))} points",
            metrics=METRICS,
            sets="shapes",
            options={"data": self.data, "sets": sets},
            grid={name: list(getattr(self, name)) for name in self.TUPLES},
            sizes=self.points,
            baselines=BASELINES,
        )

    def sets_of(self, size: Size) -> DataOptions:
        """Return the options of sets with one size."""
        assert size is not None, "every run has a size of set"
        return replace(self.sets, points=size)

    @cached_property
    def loaded(self) -> dict[tuple[str, Size], PointSets]:
        """Splits that were loaded, by split and size; they go to worker processes with the task."""
        return {}

    def load(self, split: str, size: Size) -> PointSets:
        """Return one split in sets of a size, loaded once; without warnings, which `prepare` has already shown."""
        if (split, size) not in self.loaded:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                self.loaded[split, size] = load_split(self.data, split, self.sets_of(size), progress=False)
        return self.loaded[split, size]

    def recipe(self, **changes: Any) -> Recipe:
        return Recipe.from_dict(changes)

    def for_seeds(self, seeds: Sequence[int], recipe: Recipe) -> Self:
        """Return the task with the robustness seeds among these; a PointsetError for unknown augmentations."""
        recipe_augmentations(recipe.augment)
        return replace(self, robustness_seeds=tuple(seed for seed in self.robustness_seeds if seed in seeds))

    def zoo_name(self, model: str) -> str:
        """Return the name itself, or for a trained model, from which training starts, the name before the dot."""
        name = model.partition(".")[0] if model in list_pretrained() else model
        parse_name(name)
        return name

    def used_options(self, model: str) -> set[str]:
        return used_options(self.zoo_name(model))

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Load both splits before the workers start, which builds missing point caches, and describe them."""
        options = self.sets_of(size)

        def load(split: str) -> None:
            self.loaded[split, size] = load_split(self.data, split, options, progress=progress)

        raise_together(*(partial(load, split) for split in SPLITS))
        train, test = (self.loaded[split, size] for split in SPLITS)
        require_sizes(train, recipe)
        require_classes(train)
        return {f"{sets.split}_sets": sets.describe() for sets in (train, test)}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return a zoo model for the classes of the data."""
        return make_model(model, self.load("test", size), options, seed)

    def trial(self, model: str, options: ModelOptions, size: Size, seed: int, folder: Path) -> ShapeTrial:
        return ShapeTrial(self, model, options, size, seed, folder)

    def metrics(self, folder: Path) -> Sequence[Metric]:
        """Mean-class accuracy stands beside accuracy if the test classes are unbalanced."""
        counts = np.unique(load_predictions(folder).labels, return_counts=True)[1]
        unbalanced = bool(counts.max() > UNBALANCED * counts.min())
        mean_class = replace(MEAN_CLASS, shown=unbalanced, brief=unbalanced)
        return [mean_class if metric == MEAN_CLASS else metric for metric in METRICS]

    def sections(self, results: Results) -> Iterator[Section]:
        """Learning curves, smaller and corrupted sets, calibration, classes, mistakes."""
        from pointset.tasks.classification_report import sections  # matplotlib and scipy, which training does not need

        return sections(results)
