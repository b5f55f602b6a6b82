"""Where an experiment stands, and how long what is left of it will take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pointset.comparison.cells import Job
from pointset.comparison.comparing import check_folder, make_jobs
from pointset.comparison.experiment import Experiment
from pointset.data.dataset import PointSets, load_split
from pointset.runs.atomic import read_json
from pointset.runs.jobs import FolderJob
from pointset.runs.threads import torch_threads
from pointset.training.loop import fit
from pointset.zoo.models import create_model

MEASURED_STEPS = 5


@dataclass(frozen=True)
class State:
    """Of one cell."""

    model: str
    points: int
    seed: int
    state: str
    """"finished", "running", "failed", "stopped" (begun, and nobody is at it) or "waiting"."""
    epochs: int
    """Finished ones."""
    accuracy: float | None = None
    """As soon as it is tested; a cell whose robustness is asked for is not finished then."""
    reason: str = ""
    """Why it failed."""


def status(experiment: Experiment, out: str | Path) -> list[State]:
    """Look at every cell's folder; nothing is started, changed or waited for.

    Raises:
        PointsetError: the folder holds another comparison.
    """
    check_folder(experiment, Path(out))
    return [_state(job) for job in make_jobs(experiment, Path(out))]


def _state(job: Job) -> State:
    epochs = finished_epochs(job)
    found = State(job.label, job.points, job.seed, state_of(job, epochs), epochs)
    if job.result.exists():
        found = replace(found, accuracy=read_json(job.result)["accuracy"])
    if found.state == "failed":
        found = replace(found, reason=job.failure.read_text(encoding="utf-8").strip())
    return found


def state_of(job: FolderJob[Any], epochs: int) -> str:
    """Where a job stands, in a word, after so many finished epochs."""
    if job.finished:
        return "finished"
    if job.running:
        return "running"
    if job.failure.exists():
        return "failed"
    return "stopped" if epochs else "waiting"


def finished_epochs(job: FolderJob[Any]) -> int:
    """Lines of the cell's history."""
    file = job.folder / "history.jsonl"
    return len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0


@dataclass(frozen=True)
class Estimate:
    """How long the cells of one model at one size take."""

    model: str
    points: int
    cells: int
    """Not finished."""
    step_seconds: float
    """Mean of a few measured steps, data included."""
    seconds: float
    """Of all its cells one after the other, less the epochs that are done."""


def estimate(experiment: Experiment, out: str | Path) -> list[Estimate]:
    """Measure a few training steps of every model at every size, on this machine as it is now; see `status`."""
    check_folder(experiment, Path(out))
    jobs = [job for job in make_jobs(experiment, Path(out)) if not job.finished]
    with torch_threads(experiment.threads):
        return [
            one
            for points in experiment.points
            for one in _estimate_size(experiment, [job for job in jobs if job.points == points])
        ]


def _estimate_size(experiment: Experiment, jobs: Sequence[Job]) -> list[Estimate]:
    if not jobs:
        return []
    train = load_split(experiment.data, "train", jobs[0].data_options, progress=False)
    found = []
    for label in experiment.labels:
        own = [job for job in jobs if job.label == label]
        if own:
            step, left = _step_seconds(own[0], train), sum(_steps_left(job, train) for job in own)
            found.append(Estimate(label, own[0].points, len(own), step, step * left))
    return found


def _step_seconds(job: Job, train: PointSets) -> float:
    """Seconds of a training step, measured on a model that is thrown away."""
    model = create_model(job.name, classes=len(train.classes), seed=job.seed, **job.model_options.as_dict())
    for steps in (1, MEASURED_STEPS):  # the first one finds memory and choices of libraries unmade
        recipe = replace(job.recipe, steps=steps, validation=0.0, patience=None)
        fitted = fit(model, train, recipe, seed=job.seed, progress=False)
    return fitted.seconds / MEASURED_STEPS


def _steps_left(job: Job, train: PointSets) -> int:
    recipe = job.recipe
    steps_per_epoch = math.ceil(len(train) * (1.0 - recipe.validation) / recipe.batch_size)
    return max(0, (recipe.steps or recipe.epochs * steps_per_epoch) - finished_epochs(job) * steps_per_epoch)
