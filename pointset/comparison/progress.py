"""The state of an experiment's runs, and an estimate of the time that the unfinished ones will take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pointset.comparison.experiment import Experiment
from pointset.comparison.grid import check_folder, make_runs, prepare_sets
from pointset.comparison.run_spec import Size
from pointset.comparison.runs import Run
from pointset.runs.threads import torch_threads
from pointset.training.sizes import usual_size

MEASURED_STEPS = 5
"""Training steps over which a step's time is averaged."""


@dataclass(frozen=True)
class State:
    """State of one run."""

    model: str
    points: Size
    seed: int
    state: str
    """"finished", "running", "failed", "stopped" (started, but no process is working on it) or "waiting"."""
    done: int
    """Length of the training saved in a checkpoint, in the task's unit."""
    metrics: Mapping[str, float] | None = None
    """Test metrics, once the model is tested; robustness tests may still be missing."""
    reason: str = ""
    """Reason of a failure."""


def status(experiment: Experiment, out: str | Path) -> list[State]:
    """Return the state of every run from its folder, without starting, changing or waiting for anything.

    Raises:
        PointsetError: the folder holds another comparison.
    """
    check_folder(experiment, Path(out))
    return [_state(run) for run in make_runs(experiment, Path(out))]


def _state(run: Run) -> State:
    found = State(run.label, run.size, run.seed, _state_name(run), run.task.done(run.epochs, run.recipe))
    if run.result.exists():
        found = replace(found, metrics=run.read().metrics)
    if found.state == "failed":
        found = replace(found, reason=run.read_failure())
    return found


def _state_name(run: Run) -> str:
    if run.finished:
        return "finished"
    if run.running:
        return "running"
    if run.failure.exists():
        return "failed"
    return "stopped" if run.epochs else "waiting"


@dataclass(frozen=True)
class Estimate:
    """The time that the unfinished runs of one model at one size will take."""

    model: str
    points: Size
    runs: int
    """Number of unfinished runs."""
    step_seconds: float
    """Mean time of a training step, including data loading; 0 if the runs reuse the training of another size."""
    seconds: float
    """Total time of the runs in sequence, without the epochs that are done."""


def estimate(experiment: Experiment, out: str | Path) -> list[Estimate]:
    """Estimate the remaining time from a few measured training steps of every model at every size.

    The steps are measured on this machine under its current load.

    Raises:
        PointsetError: the folder holds another comparison, or the data cannot be used, for example for lack of a test
            split.
    """
    check_folder(experiment, Path(out))
    groups: dict[tuple[Size, str], list[Run]] = {
        (size, label): [] for size in experiment.task.sizes for label in experiment.labels
    }
    for run in make_runs(experiment, Path(out)):
        if not run.finished:
            groups[run.size, run.label].append(run)
    if any(groups.values()):
        prepare_sets(experiment, progress=False)  # a training step would not notice a missing test split
    with torch_threads(experiment.threads):
        return [_estimate(runs) for runs in groups.values() if runs]


def _estimate(runs: Sequence[Run]) -> Estimate:
    first = runs[0]
    if first.task.takes_over(first):
        return Estimate(first.label, first.size, len(runs), 0.0, 0.0)
    step, per_epoch = step_seconds(first), first.task.steps_per_epoch(first.size, first.recipe)
    steps = first.recipe.steps or first.recipe.epochs * per_epoch
    left = sum(max(0, steps - run.epochs * per_epoch) for run in runs)
    return Estimate(first.label, first.size, len(runs), step, step * left)


def step_seconds(run: Run) -> float:
    """Measure the seconds of a training step with a temporary model."""
    size = usual_size(run.recipe)
    for steps in (1, MEASURED_STEPS):  # the first is a warm-up: memory allocation and choice of kernels
        recipe = replace(run.recipe, steps=steps, validation=0.0, patience=None, points=size, last_points=None)
        fitted = run.task.train(run, recipe, None)
    return fitted.seconds / MEASURED_STEPS
