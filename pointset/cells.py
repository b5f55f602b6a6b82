"""One model, one seed: trained and tested in a folder of its own, in a process of its own."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

from pointset.atomic import read_json, write_json
from pointset.configuration import DataOptions, ModelOptions, Recipe
from pointset.errors import PointsetError
from pointset.evaluation import evaluate
from pointset.loading import load_sets
from pointset.processes import recycled_quietly
from pointset.training import fit
from pointset.zoo import create_model


@dataclass(frozen=True)
class Cell:
    """One trained and tested model."""

    model: str
    seed: int
    accuracy: float
    """Share of all test shapes that are right."""
    mean_class_accuracy: float
    parameters: int
    seconds: float
    """Training time, data included, validation and start-up not."""
    epochs: int
    shapes: int
    """Test shapes."""


@dataclass(frozen=True)
class Job:
    """What makes a cell."""

    model: str
    seed: int
    data: str
    data_options: DataOptions
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Of torch, in the job's process."""
    folder: Path
    """Of this run alone."""

    @property
    def result(self) -> Path:
        """Where the cell is kept."""
        return self.folder / "result.json"


def run_job(job: Job) -> Cell:
    """Train and test one model with one seed, or read the result that is there."""
    import torch

    torch.set_num_threads(job.threads)
    train, test = load_sets(job.data, job.data_options, progress=False)
    model = create_model(job.model, classes=len(train.classes), seed=job.seed, **job.model_options.as_dict())
    fitted = fit(model, train, job.recipe, seed=job.seed, run=job.folder, progress=False)
    if not job.result.exists():
        evaluation = evaluate(fitted.model, test)
        cell = Cell(
            model=job.model,
            seed=job.seed,
            accuracy=evaluation.accuracy,
            mean_class_accuracy=evaluation.mean_class_accuracy,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            seconds=round(fitted.seconds, 1),
            epochs=len(fitted.history),
            shapes=len(test),
        )
        write_json(job.result, asdict(cell))
    return Cell(**read_json(job.result))


def run_jobs(jobs: Sequence[Job], workers: int | None) -> Iterator[Cell]:
    """Run jobs in processes, `workers` at once (one per core, divided by the threads, for None).

    Returns:
        The cells, as they finish.

    Raises:
        PointsetError: a process was killed; the runs that are not finished are named.
    """
    from joblib import Parallel, delayed, parallel_config

    threads = jobs[0].threads
    workers = workers or max(1, (os.cpu_count() or 1) // threads)
    try:
        n_jobs = min(workers, len(jobs))
        with recycled_quietly(), parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=threads):
            yield from Parallel(return_as="generator_unordered")(delayed(run_job)(job) for job in jobs)
    except BrokenProcessPool as error:
        unfinished = ", ".join(f"{job.model} seed {job.seed}" for job in jobs if not job.result.exists())
        raise PointsetError(
            f"a worker process was killed, for want of memory perhaps, before these were finished: {unfinished}: "
            "run the same command again, with fewer workers, and it goes on"
        ) from error
