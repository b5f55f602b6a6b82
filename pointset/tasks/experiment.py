"""An experiment on a set problem as data; a TOML file or keyword arguments.

    title = "Set Transformer, table 1"
    task = "max-regression"             # see `pointset.tasks.registry`; it takes the place of data and points
    seeds = [0, 1, 2, 3, 4]
    models = ["rFF + max", { name = "SAB + PMA", weights = "sparsemax" }]   # rows of its table; all when not given

    [options]                           # fields of the task, such as data
    [model]                             # fields of ModelOptions, for all models
    [recipe]                            # fields of Recipe that say how to train: steps, batch_size, learning_rate, ...
    [published."rFF + max"]             # what others report, as [mean, standard deviation, runs] by metric
    MAE = [0.1355, 0.0074, 5]

In a file "none" stands for no value where a field may have none, as in `clip_norm = "none"`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from pointset.comparison.experiment import (
    Entry,
    Published,
    check_keys,
    check_kind,
    read_toml,
    three_numbers,
    whole_numbers,
)
from pointset.configuration import check_seed
from pointset.errors import PointsetError
from pointset.tasks.registry import create_task
from pointset.tasks.task import Task, used_options
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

TRAINING = (
    "steps",
    "batch_size",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "schedule",
    "warmup",
    "step_every",
    "step_factor",
    "clip_norm",
    "precision",
    "device",
)
"""Fields of `Recipe` that mean something where every step has fresh sets."""


def task_recipe(**changes: Any) -> Recipe:
    """The recipe of the Set Transformer's set problems, with changes: Adam at 1e-3 throughout, and nothing else.

    Raises:
        PointsetError: a change is of a field that is unknown, or that a task has no use for.
    """
    usual: dict[str, Any] = {
        "steps": 20_000,
        "batch_size": 128,
        "optimizer": "adam",
        "schedule": "constant",
        "warmup": 0.0,
        "clip_norm": None,
        "label_smoothing": 0.0,
        "augment": (),
    }
    for name in changes:
        if name not in TRAINING:
            raise PointsetError(f"a task has no use for {name} in its recipe: known are {', '.join(TRAINING)}")
    return Recipe.from_file({**usual, **changes})


@dataclass(frozen=True, kw_only=True)
class TaskExperiment:
    """The grid model x seed on one task, and the protocol that its cells share."""

    task: str
    """Of `list_tasks()`."""
    models: tuple[Entry, ...] = ()
    """Rows of the task's table; all of them when empty."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """One run per model and seed: of weights, sets and dropout."""
    threads: int = 1
    """Of torch in each run; they can change results by rounding, so they are part of the protocol."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the task."""
    model: ModelOptions = field(default_factory=lambda: ModelOptions(dim=64, dropout=0.0, initial="xavier"))
    recipe: Recipe = field(default_factory=task_recipe)
    title: str = ""
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    """By label and metric, for the eye: no figure depends on it."""

    def __post_init__(self) -> None:
        task = self.problem
        if not self.models:
            object.__setattr__(self, "models", tuple(Entry(row) for row in task.rows))
        if not self.seeds:
            raise PointsetError("a comparison needs at least one seed")
        if self.threads < 1:
            raise PointsetError(f"threads={self.threads}: give at least 1")
        if self.recipe.steps is None:
            raise PointsetError("a task has no epochs: give its recipe steps")
        for seed in self.seeds:
            check_seed(seed)
        for what, values in (("model", self.labels), ("seed", self.seeds)):
            if len(set(values)) < len(values):
                raise PointsetError(f"a {what} is given twice: {', '.join(map(str, values))}")
        self._check_models(task)
        self._check_published(task)

    def _check_models(self, task: Task) -> None:
        folders: dict[str, str] = {}
        for entry in self.models:
            if entry.name not in task.rows:
                raise PointsetError(f"{task.name} has no row {entry.name!r}: choose from {', '.join(task.rows)}")
            entry.options(self.model)
            used = used_options(task, entry.name)
            if used is not None and (useless := [key for key in entry.changes if key not in used]):
                raise PointsetError(
                    f"{entry.name} has no use for {useless[0]}: leave it out; it has {', '.join(sorted(used))}"
                )
            other = folders.setdefault(entry.slug.casefold(), entry.label)  # some disks know no upper case
            if other != entry.label:
                raise PointsetError(f"{other!r} and {entry.label!r} would share a folder: give one another label")

    def _check_published(self, task: Task) -> None:
        if strangers := set(self.published) - set(self.labels):
            raise PointsetError(f"published figures of {', '.join(sorted(strangers))}, which is none of the models")
        metrics = [metric.name for metric in task.metrics]
        for label, figures in self.published.items():
            if unknown := set(figures) - set(metrics):
                raise PointsetError(
                    f"published.{label} has {', '.join(sorted(unknown))}: {task.name} has {', '.join(metrics)}"
                )

    @cached_property
    def problem(self) -> Task:
        """The task itself."""
        return create_task(self.task, **self.options)

    @property
    def labels(self) -> list[str]:
        """The rows, in the given order."""
        return [entry.label for entry in self.models]

    def protocol(self) -> dict[str, Any]:
        """What all cells share and what decides their figures, as plain data."""
        return {
            "task": self.task,
            "options": dict(self.options),
            "model": self.model.as_dict(),
            "recipe": self.recipe.as_dict(),
            "threads": self.threads,
        }

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "title": self.title,
            "models": [{"label": entry.label, "name": entry.name, **entry.changes} for entry in self.models],
            "seeds": list(self.seeds),
            **self.protocol(),
        }


def read_task_experiment(path: str | Path, **changes: Any) -> TaskExperiment:
    """Read an experiment on a task from a TOML file.

    Args:
        path: of the file.
        changes: fields of `TaskExperiment` that replace those of the file.

    Raises:
        PointsetError: the file is not there, is no TOML, or has an unknown or wrong entry; the file is named.
    """
    content = read_toml(path)
    try:
        return TaskExperiment(**{**_fields(content), **changes})
    except (PointsetError, TypeError, ValueError) as error:
        raise PointsetError(f"{path}: {error}") from error


def shipped_experiment(name: str) -> Path:
    """The file of a task's own experiment: inside an installed package, or in the checkout.

    Raises:
        PointsetError: no task has this name, or the file is missing.
    """
    create_task(name)
    package = Path(__file__).parent
    for folder in (package / "experiments", package.parent.parent / "scripts" / "experiments" / "tasks"):
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    raise PointsetError(f"the experiment of {name} is missing beside {package}: install pointset again")


KINDS: Mapping[str, tuple[type, str]] = {
    "title": (str, "text"),
    "task": (str, "text"),
    "threads": (int, "a whole number"),
    "models": (list, "a list of rows, or of tables with a name"),
    "options": (dict, "a table"),
    "model": (dict, "a table"),
    "recipe": (dict, "a table"),
    "published": (dict, "a table for each model"),
}
"""What stands in a file, by key; whole numbers stand under seeds."""


def _fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `TaskExperiment` out of a file's content."""
    if "task" not in content:
        raise PointsetError(
            'it names no task: add task = "max-regression", say (`pointset compare` runs a comparison of classifiers)'
        )
    check_keys(content, [entry.name for entry in fields(TaskExperiment)], KINDS)
    found = dict(content)
    if "models" in found:
        found["models"] = tuple(Entry.of(given) for given in content["models"])
    if "seeds" in found:
        found["seeds"] = whole_numbers("seeds", found["seeds"])
    if "model" in found:
        found["model"] = ModelOptions.from_file(found["model"])
    if "recipe" in found:
        found["recipe"] = task_recipe(**found["recipe"])
    found["published"] = {label: _published(label, given) for label, given in content.get("published", {}).items()}
    return found


def _published(label: str, metrics: Any) -> dict[str, Published]:
    """What others report of one model, by metric."""
    check_kind(f"published.{label}", metrics, dict, "a table with metrics as keys")
    found = {}
    for metric, figures in metrics.items():
        where, wanted = f"published.{label}.{metric}", "[mean, standard deviation, runs]"
        check_kind(where, figures, list, wanted)
        if not three_numbers(figures):
            raise PointsetError(f"{where}={figures!r} is no published figure: give {wanted}")
        found[metric] = Published(*figures)
    return found
