"""Classification of point sets as a task: one dataset, one or several set sizes, and the whole test split."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.baselines.models import BASELINES
from pointset.comparison.experiment import Table, as_tuple
from pointset.comparison.metric import Metric, Size
from pointset.comparison.results import Results
from pointset.comparison.runs import Run
from pointset.comparison.task import Task
from pointset.configuration import Points, Seed, check, check_once
from pointset.data.dataset import load_sets, load_split
from pointset.data.mixing import recipe_augmentations
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.evaluation import evaluate
from pointset.runs import digests
from pointset.runs.claims import plain
from pointset.tasks.classification.predictions import (
    PREDICTIONS,
    ROBUSTNESS,
    chance,
    class_rows,
    load_predictions,
    robustness_rows,
    save_predictions,
    write_robustness,
)
from pointset.training.checkpoints import CONTINUED, RunFolder, describe
from pointset.training.loop import Fitted, fit
from pointset.training.objectives import require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_model, create_pretrained
from pointset.zoo.names import parse_name
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained
from pointset.zoo.transfer import start_from

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
)
"""All metrics; ECE has 15 bins of equal width, or of equal mass."""
UNBALANCED = 1.5
"""Tables show the mean-class accuracy if the largest test class has this many times the shapes of the smallest."""


@dataclass(frozen=True, kw_only=True)
class Classification(Task):
    """Predict the class of a point set; the models are those of the zoo."""

    data: str = "shapes10"
    """The name of a dataset card, or a folder."""
    points: tuple[int, ...] = (1024,)
    """Set sizes."""
    sets: DataOptions = field(default_factory=DataOptions)
    """Options of the sets; their size is ignored."""
    robustness_seeds: tuple[int, ...] = ()
    """Seeds whose models are also tested on corrupted and on smaller sets."""
    robustness_points: tuple[int, ...] = ()
    """Set sizes of these models; empty means all sizes."""

    name: ClassVar[str] = "classification"
    pooled: ClassVar[bool] = True
    baselines: ClassVar[Collection[str]] = BASELINES
    unit: ClassVar[str] = "epochs"
    sets_are: ClassVar[str] = "shapes"

    def __post_init__(self) -> None:
        check("data", self.data, str)
        check("points", self.points, tuple[Points, ...])
        check("robustness_seeds", self.robustness_seeds, tuple[Seed, ...])
        check("robustness_points", self.robustness_points, tuple[Points, ...])
        if not self.points:
            raise PointsetError("points must contain at least one set size, got none")
        check_once("size", self.points)
        if unknown := set(self.robustness_points) - set(self.points):
            raise PointsetError(
                f"robustness_points must be among the points {list(self.points)}, got {sorted(unknown)}"
            )

    @classmethod
    def from_file(cls, options: Mapping[str, Any]) -> Self:
        """Create the task from the options in the file of an experiment."""
        fields = dict(options)
        check("sets", fields.get("sets", {}), Table)
        if "points" in fields.get("sets", {}):
            raise PointsetError("sets.points is not allowed: give set sizes as points, beside models")
        for name in {"points", "robustness_seeds", "robustness_points"} & fields.keys():
            fields[name] = as_tuple(fields[name])
        if "sets" in fields:
            fields["sets"] = DataOptions.from_dict(fields["sets"])
        return cls(**fields)

    @property
    def title(self) -> str:
        """The name of the data, and the set sizes."""
        return f"{Path(self.data).name}, {' / '.join(map(str, self.points))} points"

    @property
    def measured(self) -> Sequence[Metric]:
        """See `METRICS`."""
        return METRICS

    def shown_metrics(self, folder: Path) -> Sequence[Metric]:
        """The metrics as tables show them: mean-class accuracy beside accuracy if the test classes are unbalanced."""
        if not (folder / PREDICTIONS).exists():
            return METRICS
        counts = np.unique(load_predictions(folder).labels, return_counts=True)[1]
        unbalanced = bool(counts.max() > UNBALANCED * counts.min())
        mean_class = replace(MEAN_CLASS, shown=unbalanced, brief=unbalanced)
        return [mean_class if metric == MEAN_CLASS else metric for metric in METRICS]

    @property
    def sizes(self) -> Sequence[Size]:
        """The set sizes."""
        return self.points

    def sets_of(self, size: Size) -> DataOptions:
        """The options of sets with one size."""
        assert size is not None, "every run of a classifier has a size of set"
        return replace(self.sets, points=size)

    def options(self) -> dict[str, Any]:
        """The options that determine the data: its name, and those of the sets, without the size."""
        sets = self.sets.as_dict()
        del sets["points"]
        return {"data": self.data, "sets": sets}

    def as_dict(self) -> dict[str, Any]:
        """All options."""
        shown = {name: list(getattr(self, name)) for name in ("robustness_seeds", "robustness_points")}
        return {"points": list(self.points), **shown, **self.options()}

    def recipe(self, **changes: Any) -> Recipe:
        """The default recipe with changes."""
        return Recipe.from_dict(changes)

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
        """The task with only those robustness seeds that are among `seeds`."""
        return replace(self, robustness_seeds=tuple(seed for seed in self.robustness_seeds if seed in seeds))

    def zoo_name(self, model: str) -> str:
        """The name itself, or for a trained model, from which training starts, the name before the dot."""
        name = model.partition(".")[0] if model in list_pretrained() else model
        parse_name(name)
        return name

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Build missing pools before the workers start, and return the descriptions of both splits."""
        train, test = load_sets(self.data, self.sets_of(size), progress=progress)
        require_sizes(train, recipe)
        return {f"{sets.split}_sets": sets.describe() for sets in (train, test)}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size) -> nn.Module:
        """A zoo model for the classes of the data."""
        return self.make_model(model, self._sets("test", size), options, seed)

    def make_model(self, name: str, sets: PointSets, options: ModelOptions, seed: int) -> nn.Module:
        """A zoo model for the classes of sets; a trained model, by its whole name, keeps its own options."""
        if name in list_pretrained():
            return start_from(create_pretrained(name), sets.classes, sets.up, seed=seed, start=name)
        return create_model(name, len(sets.classes), options, inputs=sets.inputs, seed=seed)

    def elements(self, size: Size) -> int:
        """The number of points of a set."""
        return self.sets_of(size).points

    def train(self, run: Run, recipe: Recipe, folder: Path | None) -> Fitted:
        """Train on the training split; the seed determines weights, order, subsets, augmentation and dropout.

        If the recipe draws random set sizes, the model does not depend on the size of the comparison, and a model that
        was trained for another size is copied.
        """
        train = self._sets("train", run.size)
        model = self.make_model(run.model, train, run.model_options, run.seed)
        if folder is not None:
            others = [run.at(size).folder for size in self.points if size != run.size]
            _reuse(others, folder, model, train, recipe, run.seed)
        return fit(model, train, recipe, seed=run.seed, run=folder, progress=False)

    def reuses(self, run: Run) -> bool:
        """True if the recipe draws random set sizes and this is not the first size; see `train`."""
        return run.size != self.points[0] and _any_size(run.recipe)

    def steps_per_epoch(self, size: Size, recipe: Recipe) -> int:
        """The number of batches of training shapes, without those of the validation split."""
        train = self._sets("train", size)
        return math.ceil(len(train) * (1.0 - recipe.validation) / recipe.batch_size)

    def test(self, run: Run, model: nn.Module) -> tuple[dict[str, float], int]:
        """The metrics on the whole test split, and the number of its shapes; predictions are saved."""
        evaluation = evaluate(model, self._sets("test", run.size))
        save_predictions(evaluation, run.folder)
        metrics = {metric.name: metric.measure(evaluation) for metric in METRICS if metric.measure}
        return metrics, len(evaluation.labels)

    def is_tested(self, run: Run) -> bool:
        """True if robustness is not requested for this run, or is already saved."""
        requested = run.seed in self.robustness_seeds and run.size in (self.robustness_points or self.points)
        return not requested or (run.folder / ROBUSTNESS).exists()

    def test_further(self, run: Run, model: nn.Module) -> None:
        """Test on corrupted and on smaller sets."""
        write_robustness(run.folder, model, self._sets("test", run.size), self.sets_of(run.size).points)

    def _sets(self, split: str, size: Size) -> PointSets:
        """Load one split without warnings, which `prepare` has already shown."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return load_split(self.data, split, self.sets_of(size), progress=False)

    def scores(self, folder: Path, metrics: Mapping[str, float]) -> np.ndarray:
        """True for each test shape that is classified correctly."""
        return load_predictions(folder).right

    def length(self, recipe: Recipe) -> str:
        """Epochs or steps, and the set sizes in training if they differ from the tested size; for titles."""
        length = f"{recipe.steps} steps" if recipe.steps else f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
        length += f", at least {recipe.least_steps} steps," if recipe.least_steps else ""
        sizes = recipe.sizes_in_words
        return f"{length} of {sizes}" if sizes else length

    def taken(self, recipe: Recipe) -> str:
        """On which shapes, and after which epoch, metrics are computed; for titles."""
        return f"every test shape, {'last epoch' if recipe.patience is None else 'best validation epoch'}"

    def next_commands(self, runs: Sequence[tuple[Run, Mapping[str, float]]]) -> list[str]:
        """Commands that evaluate the most accurate run, and show the attention of the most accurate run with any."""
        by_accuracy = [run for run, _ in sorted(runs, key=lambda pair: -pair[1][ACCURACY.name])]
        with_maps = [run for run in by_accuracy if any(part.part.maps for part in parse_name(self.zoo_name(run.model)))]
        commands = [["evaluate", "--model", by_accuracy[0].folder]]
        if with_maps:
            commands += [["attend", "SHAPE.off", "--model", with_maps[0].folder]]
        return [shlex.join(["pointset", *map(str, words)]) for words in commands]

    def sections(self, results: Results) -> Mapping[str, Callable[[], Iterable[Section]]]:
        """Learning curves, smaller and corrupted sets, calibration, classes, mistakes."""
        from pointset.tasks.classification.report import sections  # matplotlib and scipy, which training does not need

        return sections(results, partial(self._sets, "test", results.points))

    def chance(self, folder: Path) -> Mapping[str, float]:
        """The accuracies of uniform guessing and of always predicting the most frequent class."""
        return chance(folder)

    def tables(self, folder: Path, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """The rows of classes.csv, and of robustness.csv if robustness was tested."""
        rows = {"classes.csv": class_rows(folder, columns), "robustness.csv": robustness_rows(folder, columns)}
        return {name: table for name, table in rows.items() if table}


def _any_size(recipe: Recipe) -> bool:
    """True if a training does not depend on the size of the evaluated sets."""
    return recipe.train_points is not None and recipe.patience is None


def _reuse(others: Sequence[Path], folder: Path, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
    """Fill an empty folder with a finished training that differs only in the size of its evaluated sets, if any."""
    if not _any_size(recipe) or (folder / "run.json").exists():
        return
    description = plain(describe(model, train, recipe, seed))
    for other in map(RunFolder, others):
        if other.finished and _at_any_size(other.description()) == _at_any_size(description):
            weights, history = other.weights(), other.history()
            digests.write_json(folder / "run.json", description)
            run = RunFolder(folder)
            # Validation results are those of the other size.
            run.write_history([{name: row[name] for name in row if "validation" not in name} for row in history])
            run.finish(weights)
            return


def _at_any_size(description: dict[str, Any]) -> dict[str, Any]:
    """What affects the weights."""
    data = description.get("data")
    if not isinstance(data, dict):
        raise PointsetError("a run.json does not describe a run: restore it from a copy, or train again")
    decisive = {name: description.get(name) for name in ("model", "recipe", "seed", "processes", CONTINUED)}
    return {**decisive, "data": {name: value for name, value in data.items() if name != "points"}}
