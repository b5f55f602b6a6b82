"""Run an experiment: its unfinished runs, then its tables and its report.

Every run has its own folder, so an interrupted comparison continues where it stopped. Every run uses the same number
of threads whatever the number of workers, so the number of workers does not affect the results.
"""

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pointset.comparison.execution import run_all
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Size
from pointset.comparison.results import Comparison, gather
from pointset.comparison.runs import Failure, Run, check_folder, claim_folder, make_runs
from pointset.comparison.status import watched
from pointset.comparison.tables import save
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.costs import multiply_adds
from pointset.evaluation.symmetry import check_symmetry
from pointset.inputs import takes
from pointset.runs.claims import owned
from pointset.runs.workers import Workers
from pointset.training.devices import find_device
from pointset.training.distributed import world_size
from pointset.training.precision import warn_of_slow_products
from pointset.zoo.carried import user_parts

MOST_DEVIATION = 1e-2
"""Tolerated deviation of a model under symmetries, relative to its largest logit; rounding mostly stays below 1e-4."""
CHECKED_SIZES = (3, 7)
"""Sizes of the sets of this check; small, because it runs at every start."""


@takes(experiment=Experiment, out=str | Path)
def run_experiment(
    experiment: Experiment,
    out: str | Path,
    workers: Workers | None = None,
    *,
    progress: bool = True,
    report: bool = True,
) -> Comparison:
    r"""Run the unfinished runs of an experiment, and write its tables and its report.

    Args:
        experiment: what to run.
        out: folder for the runs and the results; finished runs in it are not repeated.
        workers: number and kind of the worker processes.
        progress: show progress (continuously on a terminal, otherwise every half minute), and a preliminary table
            whenever a further seed is complete.
        report: write report.html and report.md too.

    Returns:
        The finished runs, with tables and statistics.

    Raises:
        PointsetError: `out` holds a comparison with another protocol, or one that another process is running; a file
            in it is damaged; or every run failed.

    Example:
        >>> from pointset.runs.workers import Workers
        >>> lines = ['task = "max-regression"', 'models = ["rff-max"]', "seeds = [0]", "[recipe]", "steps = 2"]
        >>> written = Path("maxima.toml").write_text("\n".join(lines))
        >>> experiment = pointset.read_experiment("maxima.toml")
        >>> comparison = pointset.run_experiment(experiment, "runs/maxima", Workers(1), progress=False, report=False)
        >>> [(run.model, run.seed) for run in comparison.runs]
        [('rff-max', 0)]
    """
    if world_size() > 1:
        raise PointsetError("a comparison distributes its runs itself: run it without torchrun or accelerate launch")
    out, workers = Path(out), workers or Workers()
    if workers.backend == "loky":  # the machines of a cluster may have other devices than this one
        find_device(experiment.recipe.device)
        warn_of_slow_products(experiment.recipe.precision, experiment.recipe.device)
    check_folder(experiment, out)
    task, recipe = experiment.task, experiment.recipe
    # First, so that missing data leaves no folder behind.
    prepared = {size: task.prepare(size, recipe, progress) for size in task.sizes}
    with owned(out, f"another process is running a comparison in {out}: wait for it, or choose another folder"):
        claim_folder(experiment, out, prepared)
        warn_of_order(experiment)
        return _run(experiment, out, workers, progress, report)


@takes(experiment=Experiment, out=str | Path)
def report_finished(experiment: Experiment, out: str | Path) -> Comparison:
    """Write the tables and the report of the finished runs, without training, timing or waiting for anything.

    Costs are those of an earlier call, because times measured while runs are in progress would be wrong.

    Args:
        experiment: what was run.
        out: folder of the runs; some may be in progress.

    Raises:
        PointsetError: `out` holds a comparison with another protocol, a file in it is damaged, or no run is finished.
    """
    out = Path(out)
    check_folder(experiment, out)
    outcomes = [run.read() for run in make_runs(experiment, out) if run.finished]
    if not outcomes:
        raise PointsetError(f"no run in {out} is finished: run the comparison first, without --report")
    return _write(gather(experiment, out, outcomes, measure=False), report=True)


def _run(experiment: Experiment, out: Path, workers: Workers, progress: bool, report: bool) -> Comparison:
    runs = make_runs(experiment, out)
    if workers.at_once(sum(not run.finished for run in runs), experiment.threads) > 1:
        runs = longest_first(experiment, runs)
    outcomes = list(watched(experiment, out, runs, run_all(runs, workers), progress))
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if len(failures) == len(outcomes):
        raise PointsetError(f"all runs failed; {failures[0].name}: {failures[0].reason}")
    return _write(gather(experiment, out, outcomes), report)


def _write(comparison: Comparison, report: bool) -> Comparison:
    save(comparison)
    if report:
        from pointset.comparison.report.pages import write_report  # imports matplotlib, which delays the first run

        try:
            write_report(comparison)
        except PointsetError:
            raise
        except Exception as error:  # the tables are saved, and a page must not hide them
            reason = f"{type(error).__name__}: {one_line(error, REPEATED)}"
            warnings.warn(f"the report in {comparison.folder} was not written: {reason}", stacklevel=3)
    return comparison


def longest_first(experiment: Experiment, runs: Sequence[Run]) -> list[Run]:
    """Sort runs by cost, highest first, within each seed and size, so that workers end at about the same time."""
    entries = {entry.label: entry for entry in experiment.models}
    work = {group: _work(experiment, entries[group[0]], group[1]) for group in {(run.label, run.size) for run in runs}}
    order = {key: number for number, key in enumerate(dict.fromkeys((run.seed, run.size) for run in runs))}
    return sorted(runs, key=lambda run: (order[run.seed, run.size], -work[run.label, run.size]))


def _work(experiment: Experiment, entry: Entry, size: Size) -> int:
    """Multiply-adds of a model; 0 if it cannot be built, which its runs will report."""
    task = experiment.task
    with suppress(Exception):  # a user-defined part may raise anything
        return multiply_adds(task.build(entry.name, entry.options(experiment.model), 0, size), task.elements(size))
    return 0


def warn_of_order(experiment: Experiment) -> None:
    """Warn of every row with a user-defined part whose results depend on the order of elements or on padding."""
    for entry in experiment.models:
        if deviations := _deviations(experiment, entry):
            message = f"its results depend on {deviations}; see pointset.check_symmetry"
            warnings.warn(
                f"{entry.label} is not a function of sets: {message}",
                UserWarning,
                stacklevel=4,
            )


def _deviations(experiment: Experiment, entry: Entry) -> str:
    """The things that the outputs of an untrained model should not depend on but do, as text; empty if none."""
    task, options = experiment.task, entry.options(experiment.model)
    try:
        if not user_parts(task.zoo_name(entry.name), options):
            return ""
        symmetry = check_symmetry(task.build(entry.name, options, 0, task.sizes[0]), sizes=CHECKED_SIZES)
    except PointsetError:  # the model cannot be built, which its runs will report
        return ""
    order = max(symmetry.permutation, symmetry.duplicates)
    names = {"the order of the elements": order, "padding": symmetry.padding or 0.0}
    return " and ".join(f"{name} ({_format(apart)})" for name, apart in names.items() if apart > MOST_DEVIATION)


def _format(deviation: float) -> str:
    return f"by {deviation:.0%}" if math.isfinite(deviation) else "they are not finite"
