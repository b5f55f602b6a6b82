"""Running an experiment: what is not finished of its grid, and then its files.

Every run has its own folder, so a comparison that was cut off goes on where it stopped. Every run trains with the same
number of threads whatever the number of workers, so the workers change no result.
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
    r"""Run what is not finished of an experiment, and write its tables and its report.

    Args:
        experiment: what to run.
        out: folder for the runs and the results; what is finished there is not done again.
        workers: where the work is done.
        progress: show how far it is, on a terminal all the time and elsewhere every half minute, and the table of the
            seeds that are complete whenever there is a further one.
        report: write report.html and report.md too.

    Returns:
        The finished runs, with tables and statistics.

    Raises:
        PointsetError: `out` holds a comparison under another protocol or one that another process is at, a file of it
            is damaged, or no run at all could be finished.

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
    if workers.backend == "loky":  # a cluster's machines may have other devices than this one
        find_device(experiment.recipe.device)
        warn_of_slow_products(experiment.recipe.precision, experiment.recipe.device)
    check_folder(experiment, out)
    prepared = prepare_sets(experiment, progress)  # data that is not there leaves no folder behind
    with owned(out, f"another process is running a comparison in {out}: wait for it, or choose another folder"):
        claim_folder(experiment, out, prepared)
        warn_of_order(experiment)
        return _compare(experiment, out, workers, progress, report)


@takes(experiment=Experiment, out=str | Path)
def report_finished(experiment: Experiment, out: str | Path) -> Comparison:
    """Write the tables and the report of the runs that are finished; nothing is trained, timed or waited for.

    Costs are those of an earlier call; times taken beside runs that are under way would be wrong.

    Args:
        experiment: what was run.
        out: the folder of its runs; others may be under way in it.

    Raises:
        PointsetError: `out` holds a comparison under another protocol, a file of it is damaged, or no run is finished.
    """
    out = Path(out)
    check_folder(experiment, out)
    outcomes = [run.read() for run in make_runs(experiment, out) if run.finished]
    if not outcomes:
        raise PointsetError(f"no run in {out} is finished: run the comparison first, without --report")
    return _written(gather(experiment, out, outcomes, measure=False), report=True)


def _compare(experiment: Experiment, out: Path, workers: Workers, progress: bool, report: bool) -> Comparison:
    runs = make_runs(experiment, out)
    if workers.at_once(sum(not run.finished for run in runs), experiment.threads) > 1:
        runs = longest_first(experiment, runs)
    outcomes = list(watched(experiment, out, runs, run_all(runs, workers), progress))
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if len(failures) == len(outcomes):
        raise PointsetError(f"all runs failed; {failures[0].name}: {failures[0].reason}")
    return _written(gather(experiment, out, outcomes), report)


def _written(comparison: Comparison, report: bool) -> Comparison:
    save(comparison)
    if report:
        from pointset.comparison.report.pages import write_report  # matplotlib, which the first run need not wait for

        write_report(comparison)
    return comparison
