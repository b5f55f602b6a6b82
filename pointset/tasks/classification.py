"""Classification of point sets as a task: one dataset, one or several set sizes, and the whole test split."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.baselines.models import BASELINES
from pointset.comparison.experiment import TomlTable, as_tuple
from pointset.comparison.metric import Metric, Size
from pointset.comparison.task import Results, Section, Setup, TaskFacts
from pointset.configuration import PointCount, Seed, check, check_once
from pointset.data.augmentations import recipe_augmentations
from pointset.data.dataset import load_split
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError, raise_together
from pointset.evaluation.predictions import load_predictions
from pointset.tasks.shape_trial import ShapeTrial, load_quietly, make_model
from pointset.training.objectives import require_classes, require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.names import parse_name, used_options
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained

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
        """The options of sets with one size."""
        assert size is not None, "every run has a size of set"
        return replace(self.sets, points=size)

    def recipe(self, **changes: Any) -> Recipe:
        """The usual recipe with changes."""
        return Recipe.from_dict(changes)

    def for_seeds(self, seeds: Sequence[int], recipe: Recipe) -> Self:
        """The task with the robustness seeds among these; a PointsetError for unknown augmentations."""
        recipe_augmentations(recipe.augment)
        return replace(self, robustness_seeds=tuple(seed for seed in self.robustness_seeds if seed in seeds))

    def zoo_name(self, model: str) -> str:
        """The name itself, or for a trained model, from which training starts, the name before the dot."""
        name = model.partition(".")[0] if model in list_pretrained() else model
        parse_name(name)
        return name

    def used_options(self, model: str) -> set[str]:
        """Fields of `ModelOptions` that a model is built from."""
        return used_options(self.zoo_name(model))

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Build missing pools before the workers start, and describe both splits."""
        options = self.sets_of(size)
        sets: dict[str, PointSets] = {}

        def load(split: str) -> None:
            sets[split] = load_split(self.data, split, options, progress=progress)

        raise_together(*(partial(load, split) for split in SPLITS))
        train, test = sets.values()
        require_sizes(train, recipe)
        require_classes(train)
        return {f"{sets.split}_sets": sets.describe() for sets in (train, test)}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """A zoo model for the classes of the data."""
        return make_model(model, load_quietly(self.data, "test", self.sets_of(size)), options, seed)

    def trial(self, setup: Setup) -> ShapeTrial:
        """One run."""
        robust = setup.seed in self.robustness_seeds
        return ShapeTrial(setup, self.data, self.sets_of(setup.size), METRICS, robust, len(self.points) > 1)

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
