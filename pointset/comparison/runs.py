"""A run: one model at one set size with one seed, trained and tested in its own folder.

The folder has run.json, history.jsonl and model.safetensors from the training (see `pointset.training.checkpoints`),
and result.json with the metrics. After a failure, failure.txt has the reason, until the next attempt. A task may add
files.
"""

import itertools
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec

from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Size
from pointset.comparison.task import Trial
from pointset.runs import records
from pointset.runs.files import read_file
from pointset.runs.records import write_or_compare
from pointset.zoo.classifiers import count_parameters
from pointset.zoo.options import ModelOptions
from pointset.zoo.registration import pickled_entries

EXPERIMENT = "experiment.json"
"""File in a comparison's folder with the latest experiment. `read_experiment` reads this file."""


def of_size(size: Size) -> str:
    """Return the suffix of file names for one set size."""
    return "" if size is None else f"-n{size}"


@dataclass(frozen=True)
class FinishedRun:
    """Result of a finished run."""

    metrics: Mapping[str, float]
    """Test metrics, by name."""
    parameters: int
    seconds: float
    """Training time with data loading, without validation and start-up. On a GPU, it is wall time. Otherwise, it is CPU
    time, which depends little on other work on the machine."""
    length: int
    """Number of epochs or steps (`Task.unit`). It is 0 for a model without training history, such as a baseline."""
    tested: int
    """Number of test sets."""


@dataclass(frozen=True)
class Run:
    """One run of an experiment, and its result once the run is finished. Runs are pickled for worker processes."""

    experiment: Experiment
    entry: Entry
    points: Size
    """Size of the sets."""
    seed: int
    folder: Path
    modules: tuple[bytes, ...] = field(default=(), repr=False)
    """Pickled user-defined modules of the model, for `register_pickled` in other processes."""
    result: FinishedRun = None  # type: ignore[assignment]  # None before `read` or `perform`
    """The result of a finished run."""
    reason: str = ""
    """The reason why the run could not be finished, or ""."""
    warnings: tuple[str, ...] = ()
    """Warnings in the worker process, which the main process repeats."""

    @property
    def model(self) -> str:
        """The label of the model."""
        return self.entry.label

    @property
    def options(self) -> ModelOptions:
        """The options of the model."""
        return self.entry.options(self.experiment.model)

    @property
    def metrics(self) -> Mapping[str, float]:
        """The test metrics of a finished run, by name."""
        return self.result.metrics

    @property
    def trial(self) -> Trial:
        """The arguments with which the task trains and tests the run."""
        recipe = self.experiment.recipe
        return Trial(self.entry.name, self.options, self.points, self.seed, recipe, self.folder)

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        return f"{self.model}{'' if self.points is None else f', {self.points} points'}, seed {self.seed}"

    @property
    def result_file(self) -> Path:
        """Path of the result."""
        return self.folder / "result.json"

    @property
    def failure_file(self) -> Path:
        """Path of the reason of a failure."""
        return self.folder / "failure.txt"

    @property
    def finished(self) -> bool:
        """True if the run is trained and completely tested."""
        return self.result_file.exists() and self.experiment.task.is_tested(self.trial)

    @property
    def epochs(self) -> int:
        """Number of lines of the training history, one for each finished epoch or block of steps."""
        file = self.folder / "history.jsonl"
        return len(read_file(file).splitlines()) if file.exists() else 0

    def perform(self) -> Self:
        """Train and test the model. A finished training is not repeated."""
        task, trial, start = self.experiment.task, self.trial, time.process_time()
        fitted = task.train(trial)
        if self.finished:
            return self.read()
        seconds = fitted.work if fitted.history else time.process_time() - start
        metrics, tested = task.test(trial, fitted.model)
        length = task.length(len(fitted.history), trial.recipe)
        result = FinishedRun(metrics, count_parameters(fitted.model), round(seconds, 3), length, tested)
        done = replace(self, result=result)
        records.write_json(self.result_file, done.as_dict())
        return done

    @property
    def place(self) -> dict[str, Any]:
        """Label of the model, set size and seed, as plain data."""
        return {"model": self.model, "points": self.points, "seed": self.seed}

    def as_dict(self) -> dict[str, Any]:
        """Return model, size, seed and result as plain data."""
        return {**self.place, **asdict(self.result)}

    def read(self) -> Self:
        """Return the run with the result or failure in its folder. A damaged file raises a PointsetError."""
        result: Any = None
        reason, parse = "", partial(msgspec.json.decode, type=FinishedRun)
        if self.result_file.exists():
            remedy = f"delete {self.result_file} and run the same command again to test the model again"
            result = records.parse(self.result_file, parse, "the result of a run", remedy)
        if self.failure_file.exists():
            remedy = f"delete {self.failure_file} and run the same command again"
            reason = records.read_text(self.failure_file, remedy).strip()
        return replace(self, result=result, reason=reason)

    def failed(self, reason: str) -> Self:
        """Save the reason of a failure, if the folder can be written."""
        with suppress(OSError):  # a full disk must not stop the other runs
            self.folder.mkdir(parents=True, exist_ok=True)
            records.write_text(self.failure_file, reason + "\n")
        return replace(self, reason=reason)


def make_runs(experiment: Experiment, out: Path) -> list[Run]:
    """Return all runs of an experiment, sorted by seed first, so that a table of all models is available early.

    The folder of a run does not depend on the other models.
    """
    task, models = experiment.task, []
    for entry in experiment.models:
        modules = pickled_entries(task.zoo_name(entry.name), entry.options(experiment.model))
        models.append((entry, tuple(modules)))
    return [
        Run(experiment, entry, size, seed, out / "runs" / f"{entry.slug}{of_size(size)}-seed{seed}", modules)
        for seed, size, (entry, modules) in itertools.product(experiment.seeds, task.sizes, models)
    ]


def check_folder(experiment: Experiment, out: Path) -> None:
    """Raise a PointsetError if the folder has another protocol. Nothing is written or locked."""
    if (out / "protocol.json").exists():
        claim_folder(experiment, out, {})


def claim_folder(experiment: Experiment, out: Path, prepared: Mapping[Size, dict[str, Any]]) -> None:
    """Save experiment, protocol and descriptions of the data. If saved ones differ, a PointsetError is raised."""
    files = {"protocol.json": experiment.protocol()}
    files |= {f"sets{of_size(size)}.json": description for size, description in prepared.items()}
    for name, description in files.items():
        write_or_compare(out / name, description, list(description), "comparison")
    if prepared:
        published = {label: dict(values) for label, values in experiment.published.items()}
        records.write_json(out / EXPERIMENT, experiment.as_dict() | {"published": published})
