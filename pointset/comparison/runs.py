"""A run: one model at one set size with one seed, trained and tested in its own folder.

The folder has run.json, history.jsonl and model.safetensors from the training (see `pointset.training.checkpoints`),
result.json with the metrics, and after a failure, until the next attempt, failure.txt with the reason. A task may add
files.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from filelock import FileLock, Timeout

from pointset.comparison.run_spec import Place, RunSpec
from pointset.comparison.task import Task
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import owned


@dataclass(frozen=True)
class Finished(Place):
    """The result of a finished run."""

    metrics: Mapping[str, float]
    """Test metrics, by name."""
    parameters: int
    seconds: float
    """Training time, including data loading but not validation and start-up: processor time, which depends little on
    other work on the machine, or wall-clock time on a GPU."""
    length: int
    """Length of the training, in the task's unit."""
    tested: int
    """Number of test sets."""

    @property
    def summary(self) -> str:
        """The metrics as text."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())


@dataclass(frozen=True)
class Failure(Place):
    """A run that could not be finished."""

    reason: str

    @property
    def summary(self) -> str:
        """Why."""
        return f"failed: {self.reason}"


@dataclass(frozen=True)
class Run(RunSpec):
    """One run of the grid, with the task that performs it; it is pickled to other processes."""

    task: Task

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
        return len(digests.read(file, self._repeat_advice).splitlines()) if file.exists() else 0

    @property
    def running(self) -> bool:
        """True if a process is working on the run, on this machine or on one that shares its disk."""
        try:
            with FileLock(self._lock_file, timeout=0) if self._lock_file.exists() else nullcontext():
                return False
        except Timeout:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other processes.

        Raises:
            PointsetError: another process is working on it.
        """
        busy = "another process is working on it: wait for it to finish"
        with owned(self.folder, busy, self._lock_file.name, wait=2):  # `running` may hold the lock for a moment
            yield

    @property
    def _lock_file(self) -> Path:
        return self.folder / ".run-lock"

    @property
    def _repeat_advice(self) -> str:
        return f"delete {self.folder} and run the same command again"

    def perform(self) -> Finished:
        """Train and test the model; steps that are already done are not repeated."""
        fitted = self.task.train(self, self.recipe, self.folder)
        if not self.result.exists():
            metrics, tested = self.task.test(self, fitted.model)
            found = Finished(
                self.label,
                self.size,
                self.seed,
                metrics=metrics,
                parameters=sum(parameter.numel() for parameter in fitted.model.parameters()),
                seconds=round(fitted.work, 3),
                length=self.task.done(len(fitted.history), self.recipe),
                tested=tested,
            )
            digests.write_json(self.result, asdict(found))
        if not self.finished:
            self.task.test_further(self, fitted.model)
        return self.read()

    def read(self) -> Finished:
        """Read the saved result.

        Raises:
            PointsetError: it is damaged, was edited, or belongs to another run.
        """
        remedy = f"delete {self.result} and run the same command again to test the model again"
        return digests.parse(self.result, self._parse_result, "the result of this run", remedy)

    def _parse_result(self, content: bytes) -> Finished:
        found = json.loads(content)
        if not isinstance(found, dict) or set(found) != {field.name for field in fields(Finished)}:
            raise ValueError("it has other fields")
        result = Finished(**found)
        if (result.model, result.points, result.seed) != (self.label, self.size, self.seed):
            raise ValueError(f"it is that of {result.name}")
        metrics = result.metrics.values() if isinstance(result.metrics, dict) else [None]
        numbers = [*metrics, result.parameters, result.seconds, result.length, result.tested]
        if not all(isinstance(number, int | float) for number in numbers):
            raise ValueError("it contains values that are not numbers")
        return result

    def failed(self, reason: str) -> Failure:
        """Save the reason of a failure, if the folder can be written and no other process works on the run."""
        with suppress(OSError, PointsetError), self.locked():  # a full disk, for example, must not stop the other runs
            digests.write_text(self.failure, reason + "\n")
        return self.as_failure(reason)

    def read_failure(self) -> str:
        """Read the saved reason of the failure.

        Raises:
            PointsetError: the file is damaged.
        """
        remedy = f"delete {self.failure} and run the same command again"
        return digests.read_text(self.failure, remedy).strip()

    def as_failure(self, reason: str) -> Failure:
        """The outcome of a run that failed."""
        return Failure(self.label, self.size, self.seed, reason)
