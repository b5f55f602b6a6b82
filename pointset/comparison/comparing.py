"""Run an experiment: its unfinished runs, then its tables and its report.

Every run has its own folder, so an interrupted comparison continues where it stopped. Every run uses the same number
of threads whatever the number of workers, so the number of workers does not affect the results.
"""

from pathlib import Path

from pointset.comparison.execution import run_all
from pointset.comparison.experiment import Experiment
from pointset.comparison.gathering import Comparison, gather
from pointset.comparison.grid import check_folder, claim_folder, longest_first, make_runs, prepare_sets
from pointset.comparison.results import save
from pointset.comparison.runs import Failure
from pointset.comparison.symmetries import warn_of_order
from pointset.comparison.watching import watched
from pointset.errors import PointsetError
from pointset.inputs import takes
from pointset.runs.claims import owned
from pointset.runs.workers import Workers
from pointset.training.devices import find_device
from pointset.training.distributed import world_size
from pointset.training.precision import warn_of_slow_products


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
    prepared = prepare_sets(experiment, progress)  # first, so that missing data leaves no folder behind
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

        write_report(comparison)
    return comparison
