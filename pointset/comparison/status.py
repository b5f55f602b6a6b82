"""The status of an experiment's runs, and its progress while it runs: shares, times left, tables of complete seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pointset.comparison.experiment import Experiment
from pointset.comparison.metric import Size
from pointset.comparison.results import gather
from pointset.comparison.runs import Failure, Finished, Run, check_folder, make_runs
from pointset.errors import PointsetError, escaped
from pointset.runs.progress import Board, Lines, Standing, progress_bar
from pointset.runs.workers import torch_threads
from pointset.training.checkpoints import RunFolder
from pointset.training.sizes import share_of_work, usual_size

Group = tuple[str, Size]
"""Row label and set size; runs of one group take about equally long."""


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
    name, metrics = _state_name(run), run.read().metrics if run.result.exists() else None
    reason = run.read_failure() if name == "failed" else ""
    return State(run.label, run.size, run.seed, name, run.task.done(run.epochs, run.recipe), metrics, reason)


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
    groups: dict[tuple[Size, str], list[Run]] = {
        (size, label): [] for size in experiment.task.sizes for label in experiment.labels
    }
    for run in make_runs(experiment, Path(out)):
        if not run.finished:
            groups[run.size, run.label].append(run)
    if any(groups.values()):
        for size in experiment.task.sizes:  # a training step would not notice a missing test split
            experiment.task.prepare(size, experiment.recipe, progress=False)
    with torch_threads(experiment.threads):
        return [_estimate(runs) for runs in groups.values() if runs]


def _estimate(runs: Sequence[Run]) -> Estimate:
    first = runs[0]
    if first.task.reuses(first):
        return Estimate(first.label, first.size, len(runs), 0.0, 0.0)
    if first.model in first.task.baselines:
        seconds = first.task.train(first, first.recipe, None).seconds
        return Estimate(first.label, first.size, len(runs), 0.0, len(runs) * seconds)
    step, per_epoch = step_seconds(first), first.task.steps_per_epoch(first.size, first.recipe)
    steps = first.recipe.total_steps(per_epoch)
    left = sum(max(0, steps - run.epochs * per_epoch) for run in runs)
    return Estimate(first.label, first.size, len(runs), step, step * left)


def step_seconds(run: Run) -> float:
    """Measure the seconds of a training step with a temporary model."""
    size = usual_size(run.recipe)
    for steps in (1, MEASURED_STEPS):  # the first is a warm-up: memory allocation and choice of kernels
        recipe = replace(run.recipe, steps=steps, validation=0.0, patience=None, train_points=size, last_points=None)
        fitted = run.task.train(run, recipe, None)
    return fitted.seconds / MEASURED_STEPS


def watched(
    experiment: Experiment, out: Path, runs: Sequence[Run], outcomes: Iterator[Finished | Failure], progress: bool
) -> Iterator[Finished | Failure]:
    """Yield the outcomes, and show progress and, after each complete seed, the table so far.

    A terminal shows a bar, the runs in progress, and a line for each run that has ended.
    """
    ended: list[Finished | Failure] = []
    shown: tuple[int, ...] = ()
    with progress_bar("comparing", "run", len(runs), show=progress, standing=Watch(runs).standing) as bar:
        for outcome in outcomes:
            ended.append(outcome)
            bar.update()
            if not bar.disable:
                bar.write(escaped(f"{outcome.name}: {_outcome_text(outcome, experiment)}"))
            complete = complete_seeds(runs, ended)
            if isinstance(bar, Board | Lines) and shown != complete != experiment.seeds:
                shown = complete
                if table := table_so_far(experiment, out, ended, complete):
                    bar.write(table)
            yield outcome


def complete_seeds(runs: Sequence[Run], outcomes: Sequence[Finished | Failure]) -> tuple[int, ...]:
    """The seeds whose runs have all ended, in the order of the runs."""
    over = {(outcome.model, outcome.points, outcome.seed) for outcome in outcomes}
    open_seeds = {run.seed for run in runs if (run.label, run.size, run.seed) not in over}
    return tuple(dict.fromkeys(run.seed for run in runs if run.seed not in open_seeds))


def table_so_far(
    experiment: Experiment, out: Path, outcomes: Sequence[Finished | Failure], seeds: tuple[int, ...]
) -> str:
    """The table of some seeds, marked as preliminary; empty if none of their runs is finished."""
    part = experiment.changed(seeds=seeds)
    try:
        table = gather(part, out, [outcome for outcome in outcomes if outcome.seed in seeds], measure=False)
    except PointsetError:  # a damaged file, which is reported at the end
        return ""
    name = "first table" if len(seeds) == 1 else "table so far"
    head = f"{name}, preliminary: {len(seeds)} of {len(experiment.seeds)} seeds"
    return f"\n{head}\n{table.caption()}\n{table.table(brief=True)}\n" if table.runs else ""


def _outcome_text(outcome: Finished | Failure, experiment: Experiment) -> str:
    """The outcome of a run as text: the metrics for a terminal, formatted as in the table."""
    if isinstance(outcome, Failure):
        return f"failed: {outcome.reason}"
    metrics = [metric for metric in experiment.task.measured if metric.shown and metric.brief]
    values = {metric: outcome.metrics[metric.name] for metric in metrics if metric.name in outcome.metrics}
    return ", ".join(f"{metric.title} {metric.write(value)}" for metric, value in values.items())


class Seen(NamedTuple):
    """Progress of one run, read from its folder."""

    share: float
    """Finished share of its training, in [0, 1]."""
    seconds: float
    """Time that this share took."""
    text: str
    """Progress as text."""


class Watch:
    """Reads the progress of runs from their folders."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._trained = [not run.task.reuses(run) for run in runs]
        self._over: set[Path] = set()
        self._seen: dict[Path, tuple[int, Seen]] = {}
        self._before = [self._look(run).share for run in runs]

    def standing(self) -> Standing:
        """The finished share of all trainings, and the runs in progress.

        Runs are weighted by the time that a training of their row takes; for rows without a started run, by the mean of
        the others. A run that reuses the training of another size has weight 0.
        """
        seen = [self._look(run) for run in self._runs]
        whole = _seconds_by_group(self._runs, seen)
        usual = fmean(whole.values()) if whole else 1.0
        sizes = [whole.get((run.label, run.size), usual) for run in self._runs]
        work = [size * trained for size, trained in zip(sizes, self._trained, strict=True)]
        total = sum(work)
        return Standing(
            share=sum(progress.share * size for progress, size in zip(seen, work, strict=True)) / total,
            before=sum(share * size for share, size in zip(self._before, work, strict=True)) / total,
            doing=[f"{run.name}: {progress.text}" for run, progress in self._under_way(seen)],
            longest=max((1.0 - progress.share) * size for progress, size in zip(seen, work, strict=True))
            if whole
            else 0.0,
        )

    def _look(self, run: Run) -> Seen:
        """The progress of a run; its files are read again only if they have changed."""
        if run.folder in self._over:
            return self._seen[run.folder][1]
        file = run.folder / "history.jsonl"
        changed = file.stat().st_mtime_ns if file.exists() else 0
        before = self._seen.get(run.folder)
        seen = before[1] if before and before[0] == changed else _seen(run, changed > 0)
        if run.finished:
            seen = seen._replace(share=1.0)
            self._over.add(run.folder)
        self._seen[run.folder] = changed, seen
        return seen

    def _under_way(self, seen: Sequence[Seen]) -> list[tuple[Run, Seen]]:
        begun = (pair for pair in zip(self._runs, seen, strict=True) if pair[0].folder.exists())
        return [(run, one) for run, one in begun if run.folder not in self._over and run.running]


def _seconds_by_group(runs: Sequence[Run], seen: Sequence[Seen]) -> dict[Group, float]:
    """Estimated seconds of a whole training, for the groups with a started run."""
    groups: dict[Group, list[Seen]] = {}
    for run, one in zip(runs, seen, strict=True):
        if one.share and one.seconds:
            groups.setdefault((run.label, run.size), []).append(one)
    return {group: sum(run.seconds for run in seen) / sum(run.share for run in seen) for group, seen in groups.items()}


def _seen(run: Run, begun: bool) -> Seen:
    try:
        history = RunFolder(run.folder).history() if begun else []
    except PointsetError:  # a damaged file, which the run itself will report
        history = []
    if not history:
        return Seen(0.0, 0.0, "begins")
    length, done, unit = run.recipe.steps or run.recipe.epochs, run.task.done(len(history), run.recipe), run.task.unit
    seconds, text = sum(row.get("seconds", 0.0) for row in history), f"{unit.removesuffix('s')} {done:,}"
    if run.recipe.steps is not None and unit != "steps":  # the recipe's length has another unit
        return Seen(0.0, 0.0, text + _reached(history[-1]))
    share = min(1.0, done / length) if run.recipe.steps else share_of_work(run.recipe, done)
    return Seen(share, seconds, f"{text} of {length:,}{_reached(history[-1])}")


def _reached(row: Mapping[str, Any]) -> str:
    """The accuracy or loss of an epoch, as text."""
    words = {"validation_accuracy": "validation accuracy", "accuracy": "training accuracy"}
    name = next((name for name in words if name in row), None)
    if name is None:
        return f", loss {row['loss']:.4g}" if "loss" in row else ""
    return f", {words[name]} {100 * row[name]:.1f} %"
