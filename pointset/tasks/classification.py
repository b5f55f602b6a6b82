"""The task of classifying point sets: one dataset, one or several set sizes, and tests on the whole test split."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from pointset.baselines.models import BASELINES
from pointset.comparison.experiment import TomlTable, as_tuple
from pointset.comparison.metric import Metric, Size
from pointset.comparison.rank import PREDICTIONS_CSV
from pointset.comparison.ranking import ACCURACY
from pointset.comparison.task import Results, Section, Task, Trial
from pointset.configuration import PointCount, Seed, check, check_once
from pointset.data.augmentations import recipe_augmentations
from pointset.data.dataset import load_split
from pointset.data.leakage import divided_groups, repeated_files
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.evaluation.predictions import evaluate, load_predictions, save_predictions
from pointset.evaluation.robustness import ROBUSTNESS, robustness_of, write_robustness
from pointset.training.fitting import fit
from pointset.training.loop import Fitted
from pointset.training.objectives import require_classes, require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained

_share = partial(Metric, digits=1, share=True, detailed=False)
_score = partial(Metric, higher_is_better=False, digits=3, spread=False, detailed=False, brief=False)
_error = partial(_share, higher_is_better=False, spread=False)
METRICS = (
    ACCURACY,
    _share("mean_class_accuracy", True, head="mean-class %"),
    _score("loss", head="log loss"),
    _score("brier", head="Brier", shown=False),
    _error("calibration_error", head="ECE %"),
    _error("calibration_error_equal_mass", head="ECE %, equal mass", shown=False),
    Metric("rank_error", False, 3, head="rank error", detailed=False),
)
"""All metrics. ECE is the expected calibration error (15 bins). "rank_error" is for ordered classes; see `Recipe`."""


@dataclass(frozen=True, kw_only=True)
class Classification:
    """The task of predicting the class of a point set with models of the zoo.

    Example:
        >>> task = pointset.tasks.Classification(data="shapes10", points=(128,)).task
        >>> task.title, task.sizes
        ('shapes10, 128 points', (128,))
    """

    data: str = "shapes10"
    """The name of a dataset card, or a folder."""
    points: tuple[int, ...] = (1024,)
    """Set sizes at which models are trained and tested."""
    sets: DataOptions = field(default_factory=DataOptions)
    """Options of the sets. `sets.points` is ignored."""
    robustness_seeds: tuple[int, ...] = ()
    """Seeds whose models are also tested on corrupted and on smaller sets."""
    loaded: dict[tuple[str, Size], PointSets] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Loaded splits, by name and set size. They are pickled with the task for worker processes."""

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
    def make(cls, **options: Any) -> Task:
        """Make the task from the options in an experiment's file."""
        sets = options.pop("sets", {})
        if isinstance(sets, Mapping) and "points" in sets:
            raise PointsetError("sets.points is not allowed: give the set sizes as the key points, next to models")
        if not isinstance(sets, DataOptions):
            check("sets", sets, TomlTable)
            sets = DataOptions.from_dict(sets)
        options = {name: as_tuple(value) if name != "data" else value for name, value in options.items()}
        return cls(**options, sets=sets).task

    @property
    def task(self) -> Task:
        """The task, for `pointset.comparison.Experiment`."""
        sets = self.sets.as_dict()
        del sets["points"]
        grid = {"points": list(self.points), "robustness_seeds": list(self.robustness_seeds)}
        return Task(
            name="classification",
            title=f"{Path(self.data).name}, {' / '.join(map(str, self.points))} points",
            sets="shapes",
            metrics=METRICS,
            options={**grid, "data": self.data, "sets": sets},
            grid=tuple(grid),
            sizes=self.points,
            baselines=BASELINES,
            make=self.make,
            recipe=make_recipe,
            zoo_name=zoo_name,
            used_options=row_options,
            build=self.build,
            prepare=self.prepare,
            train=self.train,
            test=self.test,
            is_tested=self.is_tested,
            scores=scores,
            tables=self.tables,
            sections=sections,
            notes=self.notes,
        )

    def load(self, split: str, size: Size, progress: bool = False) -> PointSets:
        """Return a split with sets of one size. Only the first call loads it."""
        assert size is not None, "every run has a set size"
        if (split, size) not in self.loaded:
            options = replace(self.sets, points=size)
            listing = next((sets.listing for sets in self.loaded.values() if sets.listing), None)
            self.loaded[split, size] = load_split(self.data, split, options, progress=progress, listing=listing)
        return self.loaded[split, size]

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Load and describe both splits. This builds missing point caches before the workers start."""
        recipe_augmentations(recipe.augment)
        train, test = (self.load(split, size, progress) for split in SPLITS)
        require_sizes(train, recipe)
        require_classes(train)
        return {f"{sets.split}_sets": sets.describe() for sets in (train, test)}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size) -> nn.Module:
        """Return a zoo model for the classes of the data."""
        return make_model(model, self.load("test", size), options, seed)

    def train(self, trial: Trial) -> Fitted:
        """Train on the training split. The seed determines weights, shape order, subsets, augmentation and dropout."""
        train = self.load("train", trial.size)
        model = make_model(trial.model, train, trial.options, trial.seed)
        return fit(model, train, trial.recipe, seed=trial.seed, run=trial.folder, progress=False)

    def test(self, trial: Trial, model: nn.Module) -> tuple[dict[str, float], int]:
        """Return the metrics. Save predictions and, if requested, errors on corrupted and smaller sets."""
        test = self.load("test", trial.size)
        evaluation = evaluate(model, test)
        save_predictions(evaluation, trial.folder)
        if not self.is_tested(trial):
            write_robustness(trial.folder, model, test)
        values = evaluation.summary() | ({"rank_error": evaluation.rank_error} if trial.recipe.ordered else {})
        metrics = {metric.name: values[metric.name] for metric in METRICS if metric.name in values}
        return metrics, len(evaluation.labels)

    def is_tested(self, trial: Trial) -> bool:
        """Return True if robustness is not requested for the run, or is already saved."""
        return trial.seed not in self.robustness_seeds or (trial.folder / ROBUSTNESS).exists()

    def tables(self, folder: Path, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of classes.csv, predictions.csv and, if robustness was tested, robustness.csv.

        In classes.csv, `shapes` is the number of test shapes of a class. In robustness.csv, `test` and `level` are a
        corruption and its severity, "points" and the number of points, or "clean" and 0.
        """
        run = load_predictions(folder)
        counts = np.bincount(run.labels, minlength=len(run.classes)).tolist()
        shapes = dict(zip(run.classes, counts, strict=True))
        classes = [
            {**columns, "class": name, "shapes": shapes[name], "accuracy": accuracy}
            for name, accuracy in run.per_class.items()
        ]
        place = {"model": columns["model"], "seed": columns["seed"]}
        if len(self.points) > 1:
            place["data"] = f"{columns['points']} points"
        answers = zip(run.names, run.labels, run.predictions, strict=True)
        predictions = [
            {"item": item, "label": run.classes[label], "prediction": run.classes[predicted], **place}
            for item, label, predicted in answers
        ]
        tables = {"classes.csv": classes, PREDICTIONS_CSV: predictions}
        for tested in robustness_of({0: folder}).values():
            errors = [("clean", 0, tested.clean_error)]
            errors += [(name, level, error) for name, of in tested.errors.items() for level, error in of.items()]
            errors += [("points", size, 1.0 - accuracy) for size, accuracy in tested.by_size.items()]
            tables["robustness.csv"] = [
                {**columns, "test": test, "level": level, "error": error} for test, level, error in errors
            ]
        return tables

    def notes(self) -> list[str]:
        """Return sentences about leakage from the training split."""
        train = self.load("train", self.points[0])
        return [*repeated_files(train), *divided_groups(train)]


def make_model(name: str, sets: PointSets, options: ModelOptions, seed: int) -> nn.Module:
    """Return a zoo model for the classes of `sets`. A pretrained model ignores `options`."""
    return create_for(sets, name, None if name in list_pretrained() else options, seed=seed)


def make_recipe(**changes: Any) -> Recipe:
    """Return the default recipe with changes."""
    return Recipe.from_dict(changes)


def zoo_name(model: str) -> str:
    """Return the zoo's name of a model. The name of a pretrained model is cut at the dot."""
    name = model.partition(".")[0] if model in list_pretrained() else model
    parse_name(name)
    return name


def row_options(model: str) -> set[str]:
    """Return the fields of `ModelOptions` that a model is built from."""
    return used_options(zoo_name(model))


def scores(folder: Path) -> np.ndarray:
    """Return which test shapes are classified correctly, from the predictions in the folder of a run."""
    return load_predictions(folder).right


def sections(results: Results) -> Iterator[Section]:
    """Yield the sections of `classification_report`, such as learning curves."""
    from pointset.tasks.classification_report import sections  # matplotlib and scipy, which training does not need

    return sections(results)
