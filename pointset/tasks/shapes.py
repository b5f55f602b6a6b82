"""What tasks on shapes have in common: one dataset, one or several set sizes, and the whole test split."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from pointset.comparison.experiment import TomlTable, as_tuple
from pointset.comparison.metric import Size
from pointset.comparison.runs import Run, of_run
from pointset.comparison.task import Task
from pointset.configuration import PointCount, check, check_once
from pointset.data.dataset import load_split
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.runs.records import as_saved
from pointset.training.checkpoints import CONTINUED_FROM, RunFolder, describe_run
from pointset.training.loop import Fitted, fit
from pointset.training.objectives import require_classes, require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for, create_pretrained
from pointset.zoo.names import parse_name
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import list_pretrained
from pointset.zoo.transfer import start_from


@dataclass(frozen=True, kw_only=True)
class ShapeTask(Task):
    """Base class of tasks on the shapes of a dataset; the models are those of the zoo."""

    data: str = "shapes10"
    """The name of a dataset card, or a folder."""
    points: tuple[int, ...] = (1024,)
    """Set sizes."""
    sets: DataOptions = field(default_factory=DataOptions)
    """Options of the sets; their size is ignored."""

    TUPLES: ClassVar[tuple[str, ...]] = ("points",)
    """Fields that are tuples, for which a file has lists."""
    unit: ClassVar[str] = "epochs"
    sets_are: ClassVar[str] = "shapes"

    def __post_init__(self) -> None:
        check("data", self.data, str)
        check("points", self.points, tuple[PointCount, ...])
        if not self.points:
            raise PointsetError("points must contain at least one set size, got none")
        check_once("size", self.points)

    @classmethod
    def from_file(cls, options: Mapping[str, Any]) -> Self:
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
    def title(self) -> str:
        """The name of the data, and the set sizes."""
        return f"{Path(self.data).name}, {' / '.join(map(str, self.points))} points"

    @property
    def sizes(self) -> Sequence[Size]:
        return self.points

    def sets_of(self, size: Size) -> DataOptions:
        """The options of sets with one size."""
        assert size is not None, "every run has a size of set"
        return replace(self.sets, points=size)

    def options(self) -> dict[str, Any]:
        """The options that determine the data: its name, and those of the sets, without the size."""
        sets = self.sets.as_dict()
        del sets["points"]
        return {"data": self.data, "sets": sets}

    def as_dict(self) -> dict[str, Any]:
        return {**{name: list(getattr(self, name)) for name in self.TUPLES}, **self.options()}

    def recipe(self, **changes: Any) -> Recipe:
        return Recipe.from_dict(changes)

    def zoo_name(self, model: str) -> str:
        """The name itself, or for a trained model, from which training starts, the name before the dot."""
        name = model.partition(".")[0] if model in list_pretrained() else model
        parse_name(name)
        return name

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Build missing pools before the workers start, and return the descriptions of both splits."""
        options = self.sets_of(size)
        train, test = (load_split(self.data, split, options, progress=progress) for split in ("train", "test"))
        require_sizes(train, recipe)
        require_classes(train)
        return {f"{sets.split}_sets": sets.describe() for sets in (train, test)}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """A zoo model for the classes of the data."""
        return self.make_model(model, self.load("test", size), options, seed)

    def make_model(self, name: str, sets: PointSets, options: ModelOptions, seed: int) -> nn.Module:
        """A zoo model for the classes of sets; a trained model, by its whole name, keeps its own options."""
        if name in list_pretrained():
            return start_from(create_pretrained(name), sets, seed=seed, start=name)
        return create_for(sets, name, options, seed=seed)

    def train(self, run: Run, recipe: Recipe, folder: Path | None) -> Fitted:
        """Train on the training split; the seed determines weights, order, subsets, augmentation and dropout.

        If the recipe draws random set sizes, the model does not depend on the size of the comparison, and a model that
        was trained for another size is copied.
        """
        train = self.load("train", run.points)
        model = self.make_model(run.entry.name, train, run.options, run.seed)
        if folder is not None:
            names = [f"{run.entry.slug}{of_run(size, run.seed)}" for size in self.points if size != run.points]
            others = [folder.with_name(name) for name in names]
            _reuse(others, folder, model, train, recipe, run.seed)
        return fit(model, train, recipe, seed=run.seed, run=folder, progress=False)

    def steps_per_epoch(self, size: Size, recipe: Recipe) -> int:
        """The number of batches of training shapes, without those of the validation split."""
        train = self.load("train", size)
        return math.ceil(len(train) * (1.0 - recipe.validation) / recipe.batch_size)

    def load(self, split: str, size: Size) -> PointSets:
        """Load one split without warnings, which `prepare` has already shown."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return load_split(self.data, split, self.sets_of(size), progress=False)

    def next_commands(self, runs: Sequence[Run]) -> list[str]:
        """Commands that evaluate the best run, and show the attention of the best classifier with any."""
        first = self.measured[0]
        ordered = sorted(runs, key=lambda run: -first.merit(run.metrics[first.name]))
        with_maps = [run for run in ordered if any(part.has_maps for part in parse_name(run.zoo_name))]
        commands = [["evaluate", "--model", ordered[0].folder]]
        if with_maps:
            commands += [["attend", "SHAPE.off", "--model", with_maps[0].folder]]
        return [shlex.join(["pointset", *map(str, words)]) for words in commands]

    def length(self, recipe: Recipe) -> str:
        """Epochs or steps, and the set sizes in training if they differ from the tested size; for titles."""
        length = f"{recipe.steps} steps" if recipe.steps else f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
        length += f", at least {recipe.least_steps} steps," if recipe.least_steps else ""
        sizes = recipe.sizes_in_words
        return f"{length} of {sizes}" if sizes else length

    def taken(self, recipe: Recipe) -> str:
        """On which shapes, and after which epoch, metrics are computed; for titles."""
        return f"every test shape, {'last epoch' if recipe.patience is None else 'best validation epoch'}"


def _reuse(others: Sequence[Path], folder: Path, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
    """Fill an empty folder with a finished training that differs only in the size of its evaluated sets, if any."""
    if not recipe.ignores_size or (folder / "run.json").exists():
        return
    description = as_saved(describe_run(model, train, recipe, seed))
    for other in map(RunFolder, others):
        if other.finished and _at_any_size(other.description()) == _at_any_size(description):
            weights, history = other.weights(), other.history()
            records.write_json(folder / "run.json", description)
            run = RunFolder(folder)
            # Validation results are those of the other size.
            run.write_history([{name: row[name] for name in row if "validation" not in name} for row in history])
            run.finish(weights)
            return


def _at_any_size(description: dict[str, Any]) -> dict[str, Any]:
    """What affects the weights."""
    decisive = {name: description.get(name) for name in ("model", "recipe", "seed", "processes", CONTINUED_FROM)}
    data = description.get("data", {})
    return {**decisive, "data": {name: value for name, value in data.items() if name not in ("points", "preparation")}}
