"""The description of an experiment: a task, models, seeds and one protocol."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from msgspec import Meta

from pointset.comparison.metric import Published
from pointset.comparison.task import Task
from pointset.configuration import Cores, Count, NonNegative, Seed, check, check_once, closest_spelling
from pointset.errors import PointsetError, quoted
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

LONGEST_LABEL = 150
"""Characters of a label; file names have at most 255 bytes, and size and seed are appended to the label."""
TomlTable = Annotated[dict[str, Any], Meta(description="a table")]
PublishedNumbers = Annotated[
    tuple[float, NonNegative, Count], Meta(description="[mean, standard deviation of at least 0, runs of at least 1]")
]
PublishedShare = Annotated[float, Meta(ge=0, le=1)]
Shares = Annotated[
    tuple[PublishedShare, PublishedShare, Count],
    Meta(description="[mean, standard deviation, runs], two shares from 0 to 1 and at least 1 run"),
]


@dataclass(frozen=True)
class Entry:
    """One row of a comparison: a model's name and its changes to the shared options."""

    name: str
    """Name of a model, as in `list_models`."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `ModelOptions` that differ from the shared options."""
    label: str = ""
    """Label of the row; default: the name and the changes."""

    def __post_init__(self) -> None:
        check("name", self.name, str)
        check("label", self.label, str)
        described = [self.name, *(f"{key}={value}" for key, value in self.changes.items())]
        object.__setattr__(self, "label", self.label or " ".join(described))
        if len(self.label) > LONGEST_LABEL:
            length = f"has {len(self.label)} characters, but it names a folder: use at most {LONGEST_LABEL}"
            raise PointsetError(f"label {quoted(self.label)} {length}")

    @property
    def slug(self) -> str:
        """The label as part of a file name."""
        return re.sub(r"[^\w.+=-]+", "_", self.label)

    def options(self, shared: ModelOptions) -> ModelOptions:
        """Return the model's options: the shared ones with the changes."""
        return shared.changed(self.changes)

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Self) -> "Entry":
        """Make an entry from a name, or from a table with `name`, optionally `label`, and changes."""
        if isinstance(given, Entry):
            return given
        if isinstance(given, str):
            return cls(given)
        if not isinstance(given, Mapping) or "name" not in given:
            raise PointsetError(f"models must be names, or tables with a name and options, got {quoted(given)}")
        changes = {key: value for key, value in given.items() if key not in ("name", "label")}
        return cls(given["name"], changes, given.get("label", ""))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The grid model x size x seed on one task, and the protocol that its runs share.

    Example:
        >>> from pointset.comparison.experiment import Entry, Experiment
        >>> from pointset.tasks import Counting
        >>> experiment = Experiment(task=Counting(), models=(Entry("rff-sum"),), seeds=(0, 1))
        >>> experiment.labels, experiment.changed(seeds=(0,)).seeds
        (['rff-sum'], (0,))
    """

    task: Task
    """The task: what is learned, on which sets, and with which metrics."""
    models: tuple[Entry, ...] = ()
    """The models, as entries or as what `Entry.of` takes; default: the task's own rows."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds; there is one run per model, size and seed."""
    threads: int = 1
    """Torch threads of each run; part of the protocol because they can change results by rounding."""
    model: ModelOptions = None  # type: ignore[assignment]  # the task's usual ones
    """Options shared by all models; default: the task's usual ones."""
    recipe: Recipe = None  # type: ignore[assignment]  # the task's usual one
    """Training recipe of all runs; default: the task's usual one."""
    title: str = ""
    """Title of the report."""
    published: Mapping[str, Mapping[str | int, Published]] = field(default_factory=dict)
    """Published values by label, and by set size or metric name; shown beside the results, which do not depend on
    them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(map(Entry.of, self.models or self.task.facts.rows)))
        object.__setattr__(self, "model", self.model or self.task.facts.model)
        object.__setattr__(self, "recipe", self.recipe or self.task.recipe())
        if not self.models or not self.seeds:
            raise PointsetError('a comparison needs at least one model and one seed: give models = ["rff-max"]')
        check("title", self.title, str)
        check("threads", self.threads, Cores)
        for seed in self.seeds:
            check("seed", seed, Seed)
        for what, values in (("model", self.labels), ("seed", self.seeds)):
            check_once(what, values)
        object.__setattr__(self, "task", self.task.for_seeds(self.seeds, self.recipe))
        self._check_models()
        published = {label: self._published(label, rows) for label, rows in self.published.items()}
        object.__setattr__(self, "published", published)

    def _check_models(self) -> None:
        folders: dict[str, str] = {}
        for entry in self.models:
            used = self.task.used_options(entry.name)
            entry.options(self.model)
            if unused := [key for key in entry.changes if key not in used]:
                known = ", ".join(sorted(used))
                raise PointsetError(f"{entry.name} does not use {unused[0]}: leave it out; it uses {known}")
            other = folders.setdefault(entry.slug.casefold(), entry.label)  # some file systems ignore case
            if other != entry.label:
                raise PointsetError(f"{quoted(other)} and {quoted(entry.label)} would share a folder: rename one")

    def _published(self, label: str, rows: Mapping[Any, Sequence[Any]]) -> dict[str | int, Published]:
        """Return the published values of one row, checked; in a file, sizes are texts."""
        if label not in self.labels:
            known = ", ".join(self.labels)
            raise PointsetError(f"published.{label} is not a row of the experiment: choose from {known}")
        metrics = {metric.name: metric for metric in self.task.facts.metrics}
        published: dict[str | int, Published] = {}
        for name, values in rows.items():
            where, key = f"published.{label}.{name}", int(name) if str(name).isdecimal() else name
            if None not in self.task.facts.sizes:
                check(f"the key of {where}", key, Count)
            elif key not in metrics:
                raise PointsetError(
                    f"{where} is not of a metric of {self.task.facts.name}: choose from {', '.join(metrics)}"
                )
            metric = metrics.get(str(key), self.task.facts.metrics[0])
            check(where, values, Shares if metric.share else PublishedNumbers)
            published[key] = Published(*values)
        return published

    def __repr__(self) -> str:
        """One line with title, task, and the numbers of models and seeds."""
        models, seeds, data = len(self.models), len(self.seeds), self.task.facts.title
        return (
            f"Experiment {self.title or 'without a title'}: {models} model{'s' * (models != 1)} on {data}, "
            f"{seeds} seed{'s' * (seeds != 1)}"
        )

    @property
    def labels(self) -> list[str]:
        """Labels of the rows, in the given order."""
        return [entry.label for entry in self.models]

    def changed(self, **changes: Any) -> "Experiment":
        """Return a copy of the experiment with other fields, or with other options of its task.

        Raises:
            PointsetError: neither the experiment nor its task has a field of that name.
        """
        own = {option.name for option in dataclasses.fields(self)}
        options = {name: changes.pop(name) for name in list(changes) if name not in own}
        task: Any = changes.pop("task", self.task)
        known = [option.name for option in dataclasses.fields(task)]
        for name in options:
            if name not in known:
                raise PointsetError(unknown_key(name, [*sorted(own), *known]))
        return dataclasses.replace(self, task=dataclasses.replace(task, **options), **changes)

    def protocol(self) -> dict[str, Any]:
        """Everything that all runs share and that affects their results, as plain data."""
        task = {"task": self.task.facts.name, "options": dict(self.task.facts.options)}
        return task | {"model": self.model.as_dict(), "recipe": self.recipe.as_dict(), "threads": self.threads}

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as plain data."""
        shared, grid = self.protocol(), self.task.facts.grid
        task, options = shared.pop("task"), shared.pop("options")
        return {
            "title": self.title,
            "task": task,
            **({**grid, **options} if grid else {"options": options}),
            "models": [{"label": e.label, "name": e.name, **e.changes} for e in self.models],
            "seeds": list(self.seeds),
            **shared,
        }


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the message about an unknown key, with the nearest known one."""
    return f"{quoted(key)} is unknown: did you mean {closest_spelling(key, known)}? Known: {', '.join(known)}"


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a list as a tuple; any other value as a tuple of one entry."""
    return tuple(value) if isinstance(value, list) else (value,)
