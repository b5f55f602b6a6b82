"""The states of an experiment's runs, the time that they will take, and their progress."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pointset.comparison.experiment import Experiment
from pointset.comparison.metric import Size
from pointset.comparison.results import gather
from pointset.comparison.runs import Failure, Finished, Run, check_folder, make_runs
from pointset.errors import PointsetError, escaped
from pointset.runs.progress import on_terminal, progress_bar, write_line
from pointset.runs.workers import torch_threads

MEASURED_STEPS = 5
"""Training steps over which a step's time is averaged."""


@dataclass(frozen=True)
class State:
    """State of one run."""

    model: str
    points: Size
    seed: int
    state: str
    """See `Run.state`."""
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
    state, metrics = run.state, run.read().metrics if run.result.exists() else None
    reason = run.read_failure() if state == "failed" else ""
    return State(run.label, run.size, run.seed, state, run.task.done(run.epochs, run.recipe), metrics, reason)


@dataclass(frozen=True)
class Estimate:
    """The time that the unfinished runs of one model at one size will take."""

    model: str
    points: Size
    runs: int
    """Number of unfinished runs."""
    step_seconds: float
    """Mean time of a training step, including data loading; 0 for baselines, and for runs that reuse a training."""
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
    task = experiment.task
    unfinished = [run for run in make_runs(experiment, Path(out)) if not run.finished]
    rows = [(size, label) for size in task.sizes for label in experiment.labels]
    groups = [[run for run in unfinished if (run.size, run.label) == row] for row in rows]
    if unfinished:
        for size in task.sizes:  # a training step would not notice a missing test split
            task.prepare(size, experiment.recipe, progress=False)
    with torch_threads(experiment.threads):
        return [_estimate(runs) for runs in groups if runs]


def _estimate(runs: Sequence[Run]) -> Estimate:
    first, step, seconds = runs[0], 0.0, 0.0
    if first.model in first.task.baselines:
        seconds = len(runs) * first.task.train(first, first.recipe, None).seconds
    elif not first.task.reuses(first):
        step, per_epoch = step_seconds(first), first.task.steps_per_epoch(first.size, first.recipe)
        steps = first.recipe.total_steps(per_epoch)
        seconds = step * sum(max(0, steps - run.epochs * per_epoch) for run in runs)
    return Estimate(first.label, first.size, len(runs), step, seconds)


def step_seconds(run: Run) -> float:
    """Measure the seconds of a training step with a temporary model."""
    size = run.recipe.usual_size
    for steps in (1, MEASURED_STEPS):  # the first is a warm-up: memory allocation and choice of kernels
        recipe = replace(run.recipe, steps=steps, validation=0.0, patience=None, train_points=size, last_points=None)
        fitted = run.task.train(run, recipe, None)
    return fitted.seconds / MEASURED_STEPS


def watched(
    experiment: Experiment, out: Path, runs: Sequence[Run], outcomes: Iterator[Finished | Failure], progress: bool
) -> Iterator[Finished | Failure]:
    """Yield the outcomes, and show progress: after each complete seed but the last, the table so far.

    A terminal also shows a bar, and a line for each outcome.
    """
    ended: list[Finished | Failure] = []
    complete: list[int] = []
    with progress_bar("comparing", "run", len(runs), show=progress) as bar:
        for outcome in outcomes:
            ended.append(outcome)
            bar.update()
            if on_terminal() and not bar.disable:
                write_line(escaped(f"{outcome.name}: {_outcome_text(outcome, experiment)}"))
            if sum(other.seed == outcome.seed for other in ended) == sum(run.seed == outcome.seed for run in runs):
                complete.append(outcome.seed)
                if not bar.disable and len(complete) < len(experiment.seeds):
                    write_line(table_so_far(experiment, out, ended, complete))
            yield outcome


def table_so_far(
    experiment: Experiment, out: Path, outcomes: Sequence[Finished | Failure], seeds: Sequence[int]
) -> str:
    """The table of some seeds, marked as preliminary; without a finished run, only that mark."""
    ordered = tuple(seed for seed in experiment.seeds if seed in seeds)
    head = f"\n{len(seeds)} of {len(experiment.seeds)} seeds, preliminary:"
    try:
        of_seeds = [outcome for outcome in outcomes if outcome.seed in seeds]
        table = gather(experiment.changed(seeds=ordered), out, of_seeds, measure=False)
    except PointsetError:  # a damaged file, which is reported at the end
        return head
    return f"{head}\n{table.caption()}\n{table.table(brief=True)}\n" if table.runs else f"{head} no run is finished"


def _outcome_text(outcome: Finished | Failure, experiment: Experiment) -> str:
    """The outcome of a run as text: the metrics for a terminal, formatted as in the table."""
    if isinstance(outcome, Failure):
        return f"failed: {outcome.reason}"
    metrics = [metric for metric in experiment.task.measured if metric.shown and metric.brief]
    values = {metric: outcome.metrics[metric.name] for metric in metrics if metric.name in outcome.metrics}
    return ", ".join(f"{metric.title} {metric.write(value)}" for metric, value in values.items())
