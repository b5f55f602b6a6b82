"""The states of an experiment's runs, the time that they will take, and their progress."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pointset.comparison.experiment import Experiment
from pointset.comparison.metric import Size
from pointset.comparison.results import gather
from pointset.comparison.runs import Failure, Finished, Run, check_folder, make_runs
from pointset.errors import PointsetError, escaped
from pointset.runs.progress import Board, Lines, Standing, progress_bar
from pointset.runs.workers import torch_threads
from pointset.training.checkpoints import RunFolder

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
    """Yield the outcomes, and show progress and, after each complete seed but the last, the table so far.

    A terminal shows a bar, the runs in progress, and a line for each run that has ended.
    """
    ended: list[Finished | Failure] = []
    complete: list[int] = []
    before = standing(runs).share

    def look() -> Standing:
        return replace(standing(runs), before=before)

    with progress_bar("comparing", "run", len(runs), show=progress, standing=look) as bar:
        for outcome in outcomes:
            ended.append(outcome)
            bar.update()
            if not bar.disable:
                bar.write(escaped(f"{outcome.name}: {_outcome_text(outcome, experiment)}"))
            if sum(other.seed == outcome.seed for other in ended) == sum(run.seed == outcome.seed for run in runs):
                complete.append(outcome.seed)
                if isinstance(bar, Board | Lines) and len(complete) < len(experiment.seeds):
                    bar.write(table_so_far(experiment, out, ended, complete))
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


def standing(runs: Sequence[Run]) -> Standing:
    """The finished share of all trainings, and the runs in progress; runs that reuse a training do not count."""
    shares, doing = [], []
    for run in runs:
        finished = run.finished
        share, text = (1.0, "") if finished else _progress(run)
        shares += [] if run.task.reuses(run) else [share]
        doing += [f"{run.name}: {text}"] if not finished and run.folder.exists() and run.running else []
    return Standing(share=sum(shares) / len(shares), before=0.0, doing=doing)


def _progress(run: Run) -> tuple[float, str]:
    """The finished share of a training, from its history, and as text."""
    try:
        history = RunFolder(run.folder).history() if (run.folder / "history.jsonl").exists() else []
    except PointsetError:  # a damaged file, which the run itself will report
        history = []
    if not history:
        return 0.0, "begins"
    recipe, unit, last = run.recipe, run.task.unit, history[-1]
    done, length = run.task.done(len(history), recipe), recipe.steps or recipe.epochs
    same_unit = recipe.steps is None or unit == "steps"
    text = f"{unit.removesuffix('s')} {done:,}" + (f" of {length:,}" if same_unit else "")
    for name, words in (("validation_accuracy", "validation accuracy"), ("accuracy", "training accuracy")):
        if name in last:
            return _share(run, done, same_unit), f"{text}, {words} {100 * last[name]:.1f} %"
    return _share(run, done, same_unit), text + (f", loss {last['loss']:.4g}" if "loss" in last else "")


def _share(run: Run, done: int, same_unit: bool) -> float:
    if run.recipe.steps is None:
        return run.recipe.share_of_work(done)
    return min(1.0, done / run.recipe.steps) if same_unit else 0.0
