"""Where an experiment on a set problem stands, and how long what is left of it will take."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pointset.comparison.progress import MEASURED_STEPS, finished_epochs, state_of
from pointset.runs.atomic import read_json
from pointset.runs.threads import torch_threads
from pointset.tasks.comparison import check_folder, make_jobs
from pointset.tasks.experiment import TaskExperiment
from pointset.tasks.jobs import TaskJob
from pointset.tasks.learning import BLOCK


@dataclass(frozen=True)
class TaskState:
    """Of one cell."""

    model: str
    seed: int
    state: str
    """"finished", "running", "failed", "stopped" (begun, and nobody is at it) or "waiting"."""
    steps: int
    """That are in a checkpoint, or done."""
    figures: Mapping[str, float] | None = None
    """As soon as it is tested."""
    reason: str = ""
    """Why it failed."""


def status(experiment: TaskExperiment, out: str | Path) -> list[TaskState]:
    """Look at every cell's folder; nothing is started, changed or waited for.

    Raises:
        PointsetError: the folder holds another comparison.
    """
    check_folder(experiment, Path(out))
    return [_state(job) for job in make_jobs(experiment, Path(out))]


def _state(job: TaskJob) -> TaskState:
    blocks = finished_epochs(job)
    found = TaskState(job.label, job.seed, state_of(job, blocks), _steps(job))
    if job.result.exists():
        found = replace(found, figures=read_json(job.result)["figures"])
    if found.state == "failed":
        found = replace(found, reason=job.failure.read_text(encoding="utf-8").strip())
    return found


def _steps(job: TaskJob) -> int:
    assert job.recipe.steps is not None, "the experiment sees to it"
    return min(job.recipe.steps, finished_epochs(job) * BLOCK)


@dataclass(frozen=True)
class TaskEstimate:
    """How long the cells of one model take."""

    model: str
    cells: int
    """Not finished."""
    step_seconds: float
    """Mean of a few measured steps, the drawing of the sets included."""
    seconds: float
    """Of all its cells one after the other, less the blocks of steps that are done."""


def estimate(experiment: TaskExperiment, out: str | Path) -> list[TaskEstimate]:
    """Measure a few training steps of every model, on this machine as it is now; see `status`."""
    check_folder(experiment, Path(out))
    jobs = [job for job in make_jobs(experiment, Path(out)) if not job.finished]
    found = []
    with torch_threads(experiment.threads):
        for label in experiment.labels:
            own = [job for job in jobs if job.label == label]
            if own:
                step = _step_seconds(experiment, own[0])
                left = sum((job.recipe.steps or 0) - _steps(job) for job in own)
                found.append(TaskEstimate(label, len(own), step, step * left))
    return found


def _step_seconds(experiment: TaskExperiment, job: TaskJob) -> float:
    """Seconds of a training step, measured on a model that is thrown away."""
    for steps in (1, MEASURED_STEPS):  # the first one finds memory and choices of libraries unmade
        fitted = job.train(experiment.problem, None, replace(job.recipe, steps=steps))
    return fitted.seconds / MEASURED_STEPS
