"""Progress of a comparison while it runs: the state of each run, and a table of the complete seeds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from pointset.comparison.experiment import Experiment
from pointset.comparison.gathering import gather
from pointset.comparison.run_spec import Size
from pointset.comparison.runs import Failure, Finished, Run
from pointset.errors import PointsetError, escaped
from pointset.runs.progress import Board, Lines, Standing, progress_bar
from pointset.training.checkpoints import RunFolder
from pointset.training.sizes import share_of_work

Group = tuple[str, Size]
"""Row label and set size; runs of one group take about equally long."""


def watched(
    experiment: Experiment, out: Path, runs: Sequence[Run], outcomes: Iterator[Finished | Failure], progress: bool
) -> Iterator[Finished | Failure]:
    """Yield the outcomes, and show progress and, after each complete seed, the table so far.

    A terminal shows a bar, the runs in progress, and a line for each run that has ended.
    """
    found: list[Finished | Failure] = []
    shown: tuple[int, ...] = ()
    with progress_bar("comparing", "run", len(runs), show=progress, standing=Watch(runs).standing) as bar:
        for outcome in outcomes:
            found.append(outcome)
            bar.update()
            if not bar.disable:
                bar.write(escaped(f"{outcome.name}: {_outcome_text(outcome, experiment)}"))
            complete = complete_seeds(runs, found)
            if isinstance(bar, Board | Lines) and shown != complete != experiment.seeds:
                shown = complete
                if table := table_so_far(experiment, out, found, complete):
                    bar.write(table)
            yield outcome


def complete_seeds(runs: Sequence[Run], outcomes: Sequence[Finished | Failure]) -> tuple[int, ...]:
    """The seeds whose runs have all ended, in the order of the runs."""
    over = {(one.model, one.points, one.seed) for one in outcomes}
    open_seeds = {run.seed for run in runs if (run.label, run.size, run.seed) not in over}
    return tuple(dict.fromkeys(run.seed for run in runs if run.seed not in open_seeds))


def table_so_far(
    experiment: Experiment, out: Path, outcomes: Sequence[Finished | Failure], seeds: tuple[int, ...]
) -> str:
    """The table of some seeds, marked as preliminary; empty if none of their runs is finished."""
    part = experiment.changed(seeds=seeds)
    try:
        table = gather(part, out, [one for one in outcomes if one.seed in seeds], measure=False)
    except PointsetError:  # a damaged file, which is reported at the end
        return ""
    name = "first table" if len(seeds) == 1 else "table so far"
    head = f"{name}, preliminary: {len(seeds)} of {len(experiment.seeds)} seeds"
    return f"\n{head}\n{table.caption()}\n{table.table(brief=True)}\n" if table.runs else ""


def _outcome_text(outcome: Finished | Failure, experiment: Experiment) -> str:
    """The outcome of a run as text: the metrics for a terminal, formatted as in the table."""
    if isinstance(outcome, Failure):
        return outcome.summary
    metrics = [metric for metric in experiment.task.measured if metric.shown and metric.brief]
    return ", ".join(f"{metric.title} {metric.write(outcome.metrics[metric.name])}" for metric in metrics)


class Seen(NamedTuple):
    """Progress of one run, read from its folder."""

    share: float
    """Finished share of its training, in [0, 1]."""
    seconds: float
    """Time that this share took."""
    told: str
    """Progress as text."""


class Watch:
    """Reads the progress of runs from their folders."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._trained = [not run.task.takes_over(run) for run in runs]
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
            share=sum(one.share * size for one, size in zip(seen, work, strict=True)) / total,
            before=sum(share * size for share, size in zip(self._before, work, strict=True)) / total,
            doing=[f"{run.place.name}: {one.told}" for run, one in self._under_way(seen)],
            longest=max((1.0 - one.share) * size for one, size in zip(seen, work, strict=True)) if whole else 0.0,
        )

    def _look(self, run: Run) -> Seen:
        """The progress of a run; its files are read again only if they have changed."""
        if run.folder in self._over:
            return self._seen[run.folder][1]
        file = run.folder / "history.jsonl"
        changed = file.stat().st_mtime_ns if file.exists() else 0
        before = self._seen.get(run.folder)
        found = before[1] if before and before[0] == changed else _seen(run, changed > 0)
        if run.finished:
            found = found._replace(share=1.0)
            self._over.add(run.folder)
        self._seen[run.folder] = changed, found
        return found

    def _under_way(self, seen: Sequence[Seen]) -> list[tuple[Run, Seen]]:
        begun = (pair for pair in zip(self._runs, seen, strict=True) if pair[0].folder.exists())
        return [(run, one) for run, one in begun if run.folder not in self._over and run.running]


def _seconds_by_group(runs: Sequence[Run], seen: Sequence[Seen]) -> dict[Group, float]:
    """Estimated seconds of a whole training, for the groups with a started run."""
    groups: dict[Group, list[Seen]] = {}
    for run, one in zip(runs, seen, strict=True):
        if one.share and one.seconds:
            groups.setdefault((run.label, run.size), []).append(one)
    return {
        group: sum(one.seconds for one in found) / sum(one.share for one in found) for group, found in groups.items()
    }


def _seen(run: Run, begun: bool) -> Seen:
    try:
        history = RunFolder(run.folder).history() if begun else []
    except PointsetError:  # a damaged file, which the run itself will report
        history = []
    if not history:
        return Seen(0.0, 0.0, "begins")
    asked, done, unit = run.recipe.steps or run.recipe.epochs, run.task.done(len(history), run.recipe), run.task.unit
    seconds, told = sum(row.get("seconds", 0.0) for row in history), f"{unit.removesuffix('s')} {done:,}"
    if run.recipe.steps is not None and unit != "steps":  # the recipe's length has another unit
        return Seen(0.0, 0.0, told + _reached(history[-1]))
    share = min(1.0, done / asked) if run.recipe.steps else share_of_work(run.recipe, done)
    return Seen(share, seconds, f"{told} of {asked:,}{_reached(history[-1])}")


def _reached(row: Mapping[str, Any]) -> str:
    """The accuracy or loss of an epoch, as text."""
    words = {"validation_accuracy": "validation accuracy", "accuracy": "training accuracy"}
    name = next((name for name in words if name in row), None)
    if name is None:
        return f", loss {row['loss']:.4g}" if "loss" in row else ""
    return f", {words[name]} {100 * row[name]:.1f} %"
