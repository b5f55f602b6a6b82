"""A run: one model at one set size with one seed, trained and tested in its own folder.

The folder has run.json, history.jsonl and model.safetensors from the training (see `pointset.training.checkpoints`),
result.json with the metrics, and after a failure, until the next attempt, failure.txt with the reason. A task may add
files.
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec
from filelock import FileLock, Timeout

from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Size
from pointset.comparison.task import Task
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import claim, owned
from pointset.training.recipe import Recipe
from pointset.zoo.classifiers import count_parameters
from pointset.zoo.options import ModelOptions
from pointset.zoo.registration import carried


def of_size(size: Size) -> str:
    """Suffix of file names for one set size."""
    return "" if size is None else f"-n{size}"


def of_run(size: Size, seed: int) -> str:
    """Suffix of the name of a run's folder, which starts with the row's slug."""
    return f"{of_size(size)}-seed{seed}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: `Finished` or `Failure`."""

    model: str
    """The label of its row."""
    points: Size
    """Size of the sets."""
    seed: int

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        return f"{self.model}{'' if self.points is None else f', {self.points} points'}, seed {self.seed}"


@dataclass(frozen=True)
class Finished(Outcome):
    """The result of a finished run."""

    metrics: Mapping[str, float]
    """Test metrics, by name."""
    parameters: int
    seconds: float
    """Training time, including data loading but not validation and start-up: processor time, which depends little on
    other work on the machine, or wall-clock time on a GPU."""
    length: int
    """Length of the training, in the task's unit; 0 for a model that is fitted in one go."""
    tested: int
    """Number of test sets."""


@dataclass(frozen=True)
class Failure(Outcome):
    """A run that could not be finished."""

    reason: str


@dataclass(frozen=True)
class Run:
    """One run of the grid, with the task that performs it; it is pickled to other processes."""

    label: str
    model: str
    """Name of the model in the task."""
    zoo_name: str
    """Name of the model in the zoo; it carries user-defined encoders and poolings to other processes."""
    size: Size
    seed: int
    task: Task
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Torch threads of the run's process."""
    folder: Path
    """Folder of this run."""

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        return Outcome(self.label, self.size, self.seed).name

    def at(self, size: Size) -> Self:
        """The run of the same row and seed at another size."""
        row = self.folder.name.removesuffix(of_run(self.size, self.seed))
        return replace(self, size=size, folder=self.folder.with_name(row + of_run(size, self.seed)))

    @property
    def result(self) -> Path:
        """Path of the result."""
        return self.folder / "result.json"

    @property
    def failure(self) -> Path:
        """Path of the file with the reason of a failure."""
        return self.folder / "failure.txt"

    @property
    def finished(self) -> bool:
        """True if the run is trained and completely tested."""
        return self.result.exists() and self.task.is_tested(self)

    @property
    def epochs(self) -> int:
        """Number of finished epochs, which are the lines of the history."""
        file = self.folder / "history.jsonl"
        remedy = f"delete {self.folder} and run the same command again"
        return len(digests.read(file, remedy).splitlines()) if file.exists() else 0

    @property
    def running(self) -> bool:
        """True if a process is working on the run, on this machine or on one that shares its disk."""
        try:
            with FileLock(self._lock_file, timeout=0) if self._lock_file.exists() else nullcontext():
                return False
        except Timeout:
            return True

    @property
    def state(self) -> str:
        """One of finished, running, failed, stopped (started, but no process works on it), and waiting."""
        if self.finished:
            return "finished"
        if self.running:
            return "running"
        if self.failure.exists():
            return "failed"
        return "stopped" if self.epochs else "waiting"

    def describe(self) -> dict[str, Any]:
        """The state as plain data: model, points, seed, state, length done in the task's unit, metrics, failure."""
        state = self.state
        return {
            "model": self.label,
            "points": self.size,
            "seed": self.seed,
            "state": state,
            "done": self.task.done(self.epochs, self.recipe),
            "metrics": self.read().metrics if self.result.exists() else None,  # robustness tests may still be missing
            "reason": self.read_failure() if state == "failed" else "",
        }

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other processes; a PointsetError if another one is working on it."""
        busy = "another process is working on it: wait for it to finish"
        with owned(self.folder, busy, self._lock_file.name, wait=2):  # `running` may hold the lock for a moment
            yield

    @property
    def _lock_file(self) -> Path:
        return self.folder / ".run-lock"

    def perform(self) -> Finished:
        """Train and test the model; steps that are already done are not repeated."""
        start = time.process_time()
        fitted = self.task.train(self, self.recipe, self.folder)
        seconds = fitted.work if fitted.history else time.process_time() - start
        if not self.result.exists():
            metrics, tested = self.task.test(self, fitted.model)
            parameters, length = count_parameters(fitted.model), self.task.done(len(fitted.history), self.recipe)
            of_run = (self.label, self.size, self.seed)
            result = Finished(*of_run, metrics, parameters, round(seconds, 3), length, tested)
            digests.write_json(self.result, asdict(result))
        if not self.finished:
            self.task.test_further(self, fitted.model)
        return self.read()

    def read(self) -> Finished:
        """Read the saved result; a PointsetError if it is damaged, of another run, or lacks the first metric."""

        def parse(content: bytes) -> Finished:
            result = msgspec.convert(json.loads(content), Finished)
            if result.name != self.name:
                raise ValueError(f"it is that of {result.name}")
            if (first := self.task.measured[0].name) not in result.metrics:  # of a version with other metrics
                raise ValueError(f"it has no {first}")
            return result

        remedy = f"delete {self.result} and run the same command again to test the model again"
        return digests.parse(self.result, parse, "the result of this run", remedy)

    def failed(self, reason: str) -> Failure:
        """Save the reason of a failure, if the folder can be written and no other process works on the run."""
        with suppress(OSError, PointsetError), self.locked():  # a full disk, for example, must not stop the other runs
            digests.write_text(self.failure, reason + "\n")
        return Failure(self.label, self.size, self.seed, reason)

    def read_failure(self) -> str:
        """Read the saved reason of the failure; a PointsetError if the file is damaged."""
        remedy = f"delete {self.failure} and run the same command again"
        return digests.read_text(self.failure, remedy).strip()


def make_runs(experiment: Experiment, out: Path) -> list[Run]:
    """All runs of the grid; seeds vary slowest, so that a table of all models is available early."""
    return [
        make_run(experiment, out, entry, size, seed)
        for seed in experiment.seeds
        for size in experiment.task.sizes
        for entry in experiment.models
    ]


def make_run(experiment: Experiment, out: Path, entry: Entry, size: Size, seed: int) -> Run:
    """One run of the grid; its folder does not depend on the other models."""
    options = entry.options(experiment.model)
    return Run(
        label=entry.label,
        model=entry.name,
        zoo_name=carried(experiment.task.zoo_name(entry.name), options),
        size=size,
        seed=seed,
        task=experiment.task,
        model_options=options,
        recipe=experiment.recipe,
        threads=experiment.threads,
        folder=out / "runs" / f"{entry.slug}{of_run(size, seed)}",
    )


def check_folder(experiment: Experiment, out: Path) -> None:
    """Raise a PointsetError if the folder belongs to another experiment; does not write or wait."""
    protocol = experiment.protocol()
    claim(out / "protocol.json", protocol, list(protocol), "comparison", write=False)


def claim_folder(experiment: Experiment, out: Path, prepared: Mapping[Size, dict[str, object]]) -> None:
    """Save protocol, names of metrics and descriptions of the data; a PointsetError if the folder has other ones."""
    protocol = experiment.protocol()
    metrics = {"metrics": [metric.name for metric in experiment.task.measured]}  # later versions may have further ones
    claim(out / "protocol.json", protocol | metrics, list(protocol), "comparison")
    for size, description in prepared.items():
        claim(out / f"sets{of_size(size)}.json", description, list(description), "comparison")
