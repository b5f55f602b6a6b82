"""Description of an experiment: a task, models, seeds, and the protocol (the settings that all runs share)."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

from msgspec import Meta

from pointset.arguments import closest_spelling
from pointset.comparison.metric import Published
from pointset.comparison.task import Task
from pointset.configuration import Cores, Count, NonNegative, Seed, check, check_once
from pointset.errors import PointsetError, quoted
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

LONGEST_LABEL = 150
"""Maximum number of characters of a label. Label, size and seed form a folder name, which has at most 255 bytes."""
TomlTable = Annotated[dict[str, Any], Meta(description="a table")]
PublishedNumbers = Annotated[
    tuple[float, NonNegative, Count],
    Meta(description="[mean, standard deviation (at least 0), number of runs (at least 1)]"),
]
PublishedShare = Annotated[float, Meta(ge=0, le=1)]
Shares = Annotated[
    tuple[PublishedShare, PublishedShare, Count],
    Meta(description="[mean, standard deviation, number of runs], with two shares from 0 to 1"),
]


@dataclass(frozen=True)
class Entry:
    """One row of a comparison: a model, with its options that differ from the shared options. `of` makes entries."""

    name: str
    """Name of a model, as in `list_models`."""
    changes: Mapping[str, Any]
    """Fields of `ModelOptions` that differ from the shared options."""
    label: str
    """Label of the row."""

    def __post_init__(self) -> None:
        check("name", self.name, str)
        check("label", self.label, str)
        if len(self.label) > LONGEST_LABEL:
            length = f"has {len(self.label)} characters: use at most {LONGEST_LABEL}, because it names a folder"
            raise PointsetError(f"label {quoted(self.label)} {length}")

    @property
    def slug(self) -> str:
        """The label as part of a file name."""
        return re.sub(r"[^\w.+=-]+", "_", self.label)

    def options(self, shared: ModelOptions) -> ModelOptions:
        """Return the model's options: the shared options with the changes of this entry."""
        return shared.changed(self.changes)

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Self) -> "Entry":
        """Make an entry from the name of a model, or from a mapping with `name`, optional `label`, and model options.

        The default label consists of the name and these options.
        """
        if isinstance(given, Entry):
            return given
        table = {"name": given} if isinstance(given, str) else given
        if not isinstance(table, Mapping) or "name" not in table:
            raise PointsetError(f"models must be names, or tables with a name and options, got {quoted(given)}")
        changes = {key: value for key, value in table.items() if key not in ("name", "label")}
        words = [str(table["name"]), *(f"{key}={value}" for key, value in changes.items())]
        return cls(table["name"], changes, table.get("label", " ".join(words)))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The grid of models, set sizes and seeds on one task, and the settings of all runs. `of` makes experiments.

    Example:
        >>> from pointset.comparison import Experiment
        >>> experiment = Experiment.of(pointset.tasks.Counting().task, ["rff-sum"], seeds=(0, 1))
        >>> experiment.labels, experiment.changed(seeds=(0,)).seeds
        (['rff-sum'], (0,))
    """

    task: Task
    """The task: what is learned, on which sets, and with which metrics."""
    models: tuple[Entry, ...]
    """The models, each with its label."""
    model: ModelOptions
    """Options shared by all models."""
    recipe: Recipe
    """Training recipe of all runs."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the runs. There is one run for each model, set size and seed."""
    threads: int = 1
    """Number of torch threads of each run. It is part of the protocol, because it can change rounding errors."""
    title: str = ""
    """Title of the report."""
    published: Mapping[str, Mapping[str | int, Published]] = field(default_factory=dict)
    """Published values, by label and then by set size or metric name. They are only shown next to the results."""

    @classmethod
    def of(
        cls,
        task: Task,
        models: Sequence[str | Mapping[str, Any] | Entry] = (),
        *,
        model: ModelOptions | None = None,
        recipe: Recipe | None = None,
        published: Mapping[str, Mapping[Any, Sequence[Any]]] | None = None,
        **fields: Any,
    ) -> "Experiment":
        """Make an experiment. By default, its models and options are those of the task.

        Args:
            task: what is learned, such as `pointset.tasks.Clustering().task`.
            models: names of models, mappings with a name and options, or entries.
            model: options shared by all models.
            recipe: training recipe of all runs.
            published: for each label, the published values by set size or metric name. A value is [mean, standard
                deviation, number of runs].
            fields: values of `seeds`, `threads` and `title`.

        Returns:
            The experiment.

        Raises:
            PointsetError: if a field has a wrong value; if an entry has an option that its model does not use.
        """
        return cls(
            task=task,
            models=tuple(map(Entry.of, models or task.rows)),
            model=model or task.model,
            recipe=recipe or task.recipe(),
            published={label: _published(task, label, rows) for label, rows in (published or {}).items()},
            **fields,
        )

    def __post_init__(self) -> None:
        if not self.models or not self.seeds:
            raise PointsetError('a comparison needs at least one model and one seed: give models = ["rff-max"]')
        check("title", self.title, str)
        check("threads", self.threads, Cores)
        check("seeds", self.seeds, tuple[Seed, ...])
        for what, values in (("model", self.labels), ("seed", self.seeds)):
            check_once(what, values)
        self._check_models()
        for label in self.published:
            if label not in self.labels:
                known = ", ".join(self.labels)
                raise PointsetError(f"published.{label} is not a row of the experiment: choose from {known}")

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

    def __repr__(self) -> str:
        """Return title, task, and the numbers of models and seeds, in one line."""
        models, seeds, data = len(self.models), len(self.seeds), self.task.title
        return (
            f"Experiment {self.title or 'without a title'}: {models} model{'s' * (models != 1)} on {data}, "
            f"{seeds} seed{'s' * (seeds != 1)}"
        )

    @property
    def labels(self) -> list[str]:
        """Labels of the models, in the order of `models`."""
        return [entry.label for entry in self.models]

    def changed(self, **changes: Any) -> "Experiment":
        """Return a copy of the experiment in which some fields, or some options of the task, have other values.

        Raises:
            PointsetError: if neither the experiment nor its task has a field of that name.
        """
        own = {option.name for option in dataclasses.fields(self)}
        options = {name: changes.pop(name) for name in list(changes) if name not in own}
        for name in options.keys() - self.task.options.keys():
            raise PointsetError(unknown_key(name, [*sorted(own), *self.task.options]))
        task = self.task.changed(**options) if options else self.task
        return dataclasses.replace(self, **{"task": task, **changes})

    def protocol(self) -> dict[str, Any]:
        """Return everything that all runs share and that affects their results, as plain data."""
        options = {name: value for name, value in self.task.options.items() if name not in self.task.grid}
        task = {"task": self.task.name, "options": options}
        return task | {"model": self.model.as_dict(), "recipe": self.recipe.as_dict(), "threads": self.threads}

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as plain data, with the keys of a TOML file."""
        return {
            "title": self.title,
            "task": self.task.name,
            **self.task.options,
            "models": [{"label": e.label, "name": e.name, **e.changes} for e in self.models],
            "seeds": list(self.seeds),
            "model": self.model.as_dict(),
            "recipe": self.recipe.as_dict(),
            "threads": self.threads,
        }


def _published(task: Task, label: str, rows: Mapping[Any, Sequence[Any]]) -> dict[str | int, Published]:
    """Check and return the published values of one model. Set sizes, which are strings in a file, become integers."""
    metrics = {metric.name: metric for metric in task.metrics}
    published: dict[str | int, Published] = {}
    for name, values in rows.items():
        where, key = f"published.{label}.{name}", int(name) if str(name).isdecimal() else name
        if None not in task.sizes:
            check(f"the key of {where}", key, Count)
        elif key not in metrics:
            raise PointsetError(f"{where} is not a metric of {task.name}: choose from {', '.join(metrics)}")
        metric = metrics.get(str(key), task.metrics[0])
        check(where, values, Shares if metric.share else PublishedNumbers)
        published[key] = Published(*values)
    return published


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return an error message about an unknown key. The message suggests the known key with the nearest spelling."""
    return f"{quoted(key)} is unknown: did you mean {closest_spelling(key, known)}? Known: {', '.join(known)}"


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a list or a tuple as a tuple, and any other value as a tuple of length 1."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)
