"""One model, one size of set, one seed: trained and tested in a folder of its own, in a process of its own.

run.json, history.jsonl and model.safetensors are the training's (see checkpoints.py); predictions.npz has logits and
labels of the test shapes; robustness.json the errors on corrupted and smaller sets, where they are asked for;
result.json the figures; failure.txt why the cell failed, until it is run again.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from torch import nn

from pointset.atomic import read_json, write_atomically, write_json, write_text
from pointset.configuration import DataOptions, ModelOptions, Recipe
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation, evaluate
from pointset.loading import load_sets
from pointset.processes import Workers, closed, joblib_backend
from pointset.threads import torch_threads
from pointset.training import fit
from pointset.zoo import create_model


@dataclass(frozen=True)
class Place:
    """Where in the grid something stands."""

    model: str
    """The label of its row: the model's name, and what sets it apart."""
    points: int
    """Size of the sets."""
    seed: int

    @property
    def name(self) -> str:
        """Which cell this is, in words."""
        return f"{self.model}, {self.points} points, seed {self.seed}"


@dataclass(frozen=True)
class Cell(Place):
    """One trained and tested model."""

    accuracy: float
    """Share of all test shapes that are right."""
    mean_class_accuracy: float
    loss: float
    """Cross entropy of the test shapes in nats."""
    brier: float
    calibration_error: float
    """Expected calibration error, 15 bins of equal width."""
    calibration_error_equal_mass: float
    parameters: int
    seconds: float
    """Training time, data included, validation and start-up not."""
    epochs: int
    shapes: int
    """Test shapes."""


@dataclass(frozen=True)
class Failure(Place):
    """A cell that could not be finished."""

    reason: str


@dataclass(frozen=True)
class Job:
    """What makes a cell."""

    label: str
    name: str
    """Of the zoo."""
    seed: int
    data: str
    data_options: DataOptions
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Of torch, in the job's process."""
    folder: Path
    """Of this run alone."""
    robustness: bool = False
    """Whether to test on corrupted and smaller sets too."""

    @property
    def points(self) -> int:
        """Size of the sets."""
        return self.data_options.points

    @property
    def result(self) -> Path:
        """Where the cell is kept."""
        return self.folder / "result.json"

    @property
    def failure(self) -> Path:
        """Where the reason stands when the job has failed."""
        return self.folder / "failure.txt"

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.result.exists() and (not self.robustness or (self.folder / "robustness.json").exists())

    @property
    def running(self) -> bool:
        """Whether a process is at it, on this machine or on one that shares its disk."""
        from filelock import Timeout

        try:
            with self._lock(timeout=0) if self._lock_file.exists() else nullcontext():
                return False
        except Timeout:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from doing the same job.

        Raises:
            PointsetError: one is at it.
        """
        from filelock import Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock(timeout=2)  # `running` holds it for a moment
        try:
            lock.acquire()
        except Timeout as error:
            raise PointsetError("another process is at it: wait for that one to finish") from error
        try:
            yield
        finally:
            lock.release()

    @property
    def _lock_file(self) -> Path:
        return self.folder / ".job-lock"

    def _lock(self, timeout: float) -> Any:
        from filelock import FileLock

        return FileLock(self._lock_file, timeout=timeout)

    def failed(self, reason: str) -> Failure:
        """Write down why the job failed."""
        write_text(self.failure, reason + "\n")
        return Failure(self.label, self.points, self.seed, reason)


def run_job(job: Job) -> Cell | Failure:
    """Train and test one model, or read the result that is there; whatever goes wrong is a `Failure`, not an error."""
    try:
        with job.locked(), torch_threads(job.threads):
            job.failure.unlink(missing_ok=True)
            return _run(job)
    except Exception as error:  # one cell must not stop the others
        reason = " ".join(str(error).split()) or type(error).__name__
        return job.failed(reason if isinstance(error, PointsetError) else f"{type(error).__name__}: {reason}")


def _run(job: Job) -> Cell:
    train, test = load_sets(job.data, job.data_options, progress=False)
    model = create_model(job.name, classes=len(train.classes), seed=job.seed, **job.model_options.as_dict())
    fitted = fit(model, train, job.recipe, seed=job.seed, run=job.folder, progress=False)
    if not job.result.exists():
        evaluation = evaluate(fitted.model, test)
        save_predictions(evaluation, job.folder)
        cell = Cell(
            model=job.label,
            points=job.points,
            seed=job.seed,
            accuracy=evaluation.accuracy,
            mean_class_accuracy=evaluation.mean_class_accuracy,
            loss=evaluation.loss,
            brier=evaluation.brier,
            calibration_error=evaluation.calibration_error("width"),
            calibration_error_equal_mass=evaluation.calibration_error("mass"),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            seconds=round(fitted.seconds, 3),
            epochs=len(fitted.history),
            shapes=len(test),
        )
        write_json(job.result, asdict(cell))
    if job.robustness and not job.finished:
        _test_robustness(job, fitted.model, test)
    return Cell(**read_json(job.result))


def _test_robustness(job: Job, model: nn.Module, test: PointSets) -> None:
    from pointset.evaluation.corruptions import MODELNET40_C
    from pointset.evaluation.robustness import SIZES, accuracy_by_size, robustness

    sizes = sorted({*(size for size in SIZES if size < job.points), job.points})
    found = robustness(model, test, [*MODELNET40_C, "drop_global", "drop_local"])
    content = {"by_size": accuracy_by_size(model, test, sizes), **found.as_dict()}
    write_json(job.folder / "robustness.json", content)


def save_predictions(evaluation: Evaluation, folder: Path) -> None:
    """Keep logits and labels beside the run."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, logits=evaluation.logits, labels=evaluation.labels)

    write_atomically(folder / "predictions.npz", write)


def load_predictions(folder: Path, classes: list[str]) -> Evaluation:
    """Read what `save_predictions` wrote.

    Raises:
        PointsetError: the file is missing or damaged.
    """
    path = folder / "predictions.npz"
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            return Evaluation(file["logits"], file["labels"], classes)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise PointsetError(f"{path} is damaged ({error}): delete its folder and run the same again") from error


def run_jobs(jobs: Sequence[Job], workers: Workers) -> Iterator[Cell | Failure]:
    """Run jobs in processes; on this machine one per core, divided by the threads, when no count is given.

    A process that is killed takes its pool along. The jobs that had been begun are then run one at a time, so that the
    one that kills its process is known, reported, and leaves the rest alone; the rest go on side by side.

    Returns:
        What became of each, as they finish.
    """
    left = {job.folder: job for job in jobs}
    while left:
        try:
            for job, outcome in _spread(list(left.values()), workers):
                del left[job.folder]
                yield outcome
        except BrokenProcessPool:
            begun = [job for job in left.values() if job.folder.exists() and not job.finished]
            for job in begun or list(left.values()):
                del left[job.folder]
                yield run_apart(job)


def _spread(jobs: Sequence[Job], workers: Workers) -> Iterator[tuple[Job, Cell | Failure]]:
    from joblib import Parallel, delayed

    threads = jobs[0].threads
    count = workers.count or max(1, (os.cpu_count() or 1) // threads)
    # The death of a cluster's worker would be the end of the job's neighbours, and joblib waits for dask's for ever.
    run = run_job if workers.backend == "loky" else run_apart
    with joblib_backend(workers, min(count, len(jobs)), threads):
        # Ray's backend gives back lists only.
        return_as = "list" if workers.backend == "ray" else "generator_unordered"
        with closed(Parallel(return_as=return_as)(delayed(_run_named)(run, job) for job in jobs)) as finished:
            yield from finished


def _run_named(run: Callable[[Job], Cell | Failure], job: Job) -> tuple[Job, Cell | Failure]:
    return job, run(job)


def run_apart(job: Job) -> Cell | Failure:
    """Run one job in a process of its own, whose death is its failure and nobody else's."""
    program = "import pickle, sys; from pointset.cells import run_job; run_job(pickle.load(sys.stdin.buffer))"
    ended = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(job), stderr=subprocess.PIPE, check=False
    )
    if ended.returncode < 0:
        return job.failed("its process was killed, for want of memory perhaps: give fewer workers")
    if ended.returncode > 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        return job.failed(f"its process ended with code {ended.returncode}: {said[-1]}")
    if job.failure.exists():
        return Failure(job.label, job.points, job.seed, job.failure.read_text(encoding="utf-8").strip())
    return Cell(**read_json(job.result))
