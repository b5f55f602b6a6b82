"""Run an experiment: perform its unfinished runs, then write its tables and its report.

Every run has its own folder, so an interrupted comparison continues where it stopped. Every run has the same number of
threads, so the results do not depend on the number of workers. Runs are performed in worker processes, so the crash of
one run does not affect the others.
"""

import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pointset.comparison.experiment import Experiment
from pointset.comparison.results import Comparison, as_dict, gather
from pointset.comparison.runs import Run, check_folder, claim_folder, make_runs
from pointset.comparison.tables import Table
from pointset.errors import REPEATED, PointsetError, escaped, one_line, place_in_own_code, warn_caller
from pointset.runs import records
from pointset.runs.atomic import check_folder_path, locked
from pointset.runs.progress import EVERY, on_terminal, progress_bar, write_line
from pointset.runs.spreadsheets import as_csv
from pointset.runs.workers import Workers, run_in_workers, torch_threads
from pointset.training.processes import find_device
from pointset.zoo.registration import register_pickled

RESULT_FILES = ("report.html", "table.md", "results.csv", "results.json")


def run_experiment(
    experiment: Experiment,
    out: str | Path,
    workers: Workers | None = None,
    *,
    progress: bool = True,
    report: bool = True,
) -> Comparison:
    r"""Perform the unfinished runs of an experiment, and write its tables and its report.

    Args:
        experiment: the experiment to run.
        out: folder for the runs and the results; finished runs in this folder are not repeated.
        workers: number and kind of the worker processes.
        progress: show a progress bar.
        report: also write report.html and figures/.

    Returns:
        The finished runs, with tables and statistics.

    Raises:
        PointsetError: if `out` has a comparison with another protocol (shared settings of all runs); if another process
            is running a comparison in `out`; if a file in `out` is damaged; if every run failed.

    Example:
        >>> from pointset.runs.workers import Workers
        >>> lines = ['task = "max-regression"', 'models = ["rff-max"]', "seeds = [0]", "[recipe]", "steps = 2"]
        >>> written = Path("maxima.toml").write_text("\n".join(lines))
        >>> experiment = pointset.tasks.read_experiment("maxima.toml")
        >>> run = pointset.comparison.run_experiment
        >>> comparison = run(experiment, "runs/maxima", Workers(1), progress=False, report=False)
        >>> [(run.model, run.seed) for run in comparison.runs]
        [('rff-max', 0)]
    """
    out, workers = Path(out), workers or Workers()
    workers.check()
    if not workers.scheduler:  # the machines of a cluster may have other devices than this machine
        find_device(experiment.recipe.device)
    check_folder_path(out)
    check_folder(experiment, out)
    task, recipe = experiment.task, experiment.recipe
    # The sets are prepared before the folder is made, so that missing data leaves no folder behind.
    prepared = {size: task.prepare(size, recipe, progress) for size in task.sizes}
    busy = f"another process is running a comparison in {out}: wait for it, or choose another folder"
    with locked(out / ".lock", busy):
        claim_folder(experiment, out, prepared)
        runs = make_runs(experiment, out)
        ended = list(_watched(runs, run_all(runs, workers), progress))
        if all(run.reason for run in ended):
            raise PointsetError(f"all runs failed; {ended[0].name}: {ended[0].reason}")
        return _write(gather(experiment, out, ended), report)


def report_finished(experiment: Experiment, out: str | Path) -> Comparison:
    """Write the tables and the report of the finished runs, without training, timing or waiting for anything.

    Costs are read from the files of an earlier call, because times measured while runs are in progress would be wrong.
    A PointsetError is raised if `out` has a comparison with another protocol, a file in `out` is damaged, or no run is
    finished.
    """
    check_folder(experiment, Path(out))
    finished = [run.read() for run in make_runs(experiment, Path(out)) if run.finished]
    if not finished:
        raise PointsetError(f"no run in {out} is finished: run the comparison first, without --report")
    return _write(gather(experiment, Path(out), finished, measure=False), report=True)


def _write(comparison: Comparison, report: bool) -> Comparison:
    save_tables(comparison)
    if report:
        from pointset.comparison.report.sections import write_report  # imports matplotlib, which delays the first run

        write_report(comparison)
    return comparison


def save_tables(comparison: Comparison) -> None:
    """Write table.md, results.csv, results.json and further CSV files of the task into the comparison's folder."""
    task, folder = comparison.experiment.task, comparison.folder
    names = {metric.name for metric in comparison.metrics}
    tables: dict[str, Table] = {"results.csv": []}
    for run in comparison.runs:
        result = run.result
        columns = {name: value for name, value in run.place.items() if value is not None}
        metrics = {name: value for name, value in run.metrics.items() if name in names}
        costs = {"parameters": result.parameters, "seconds": result.seconds}
        tables["results.csv"].append(columns | metrics | costs | {task.unit: result.length, task.sets: result.tested})
        for name, rows in task.tables(run.folder, columns).items():
            tables.setdefault(name, []).extend(rows)
    for name, rows in tables.items():
        records.write_text(folder / name, as_csv(rows))
    below = "\n\n".join([comparison.caption(), *comparison.sentences()])
    records.write_text(folder / "table.md", f"{comparison.table('github')}\n\n{below}\n")
    records.write_json(folder / "results.json", as_dict(comparison))


def run_one(run: Run) -> Run:
    """Perform a run, or read the result of a finished run. An error is saved as the reason of the failure."""
    experiment = run.experiment
    try:
        # Warnings are recorded here, and `run_all` repeats them in the main process.
        with torch_threads(experiment.threads), warnings.catch_warnings(record=True) as caught:
            run.failure_file.unlink(missing_ok=True)
            register_pickled(run.modules)
            ended = run.perform()
        texts = tuple(f"{one.message} ({run.name})" for one in caught if one.category is UserWarning)
        return replace(ended, warnings=texts)
    except Exception as error:  # one run must not stop the others
        known = isinstance(error, PointsetError)
        reason = one_line(error, None if known else REPEATED) or type(error).__name__
        return run.failed(reason if known else f"{type(error).__name__}: {reason}{place_in_own_code(error)}")


def run_all(runs: Sequence[Run], workers: Workers) -> Iterator[Run]:
    """Perform runs in worker processes, and yield each run when it ends.

    By default, there is one worker per `threads` cores. If a worker process is killed, all workers stop. The runs that
    had started are then repeated one at a time, each in its own subprocess, to find the run that kills its process. The
    remaining runs continue in parallel.
    """
    from joblib import delayed

    threads, left = runs[0].experiment.threads, {run.name: run for run in runs}
    if workers.scheduler:  # the machines of a cluster load the sets from their own disks
        fresh = runs[0].experiment.changed(task=runs[0].experiment.task.changed())
        left = {name: replace(run, experiment=fresh) for name, run in left.items()}
    # On a cluster, joblib would wait forever for the runs of a worker that has died.
    perform = run_apart if workers.scheduler else run_one
    while left:
        # Absolute paths: joblib's workers outlive this call, and may have started in another working directory.
        jobs = [delayed(perform)(replace(run, folder=run.folder.absolute())) for run in left.values()]
        try:
            for ended in run_in_workers(jobs, workers, workers.at_once(len(left), threads), threads):
                for text in ended.warnings:
                    warn_caller(text)
                yield replace(left.pop(ended.name), result=ended.result, reason=ended.reason)
        except BrokenProcessPool:
            begun = [run for run in left.values() if run.folder.exists() and not run.finished]
            # Never leave exactly one run: joblib would perform it in this process, which the run may kill.
            for run in begun if begun and len(begun) < len(left) - 1 else list(left.values()):
                del left[run.name]
                yield run_apart(run)


def run_apart(run: Run) -> Run:
    """Perform one run in a subprocess, so that only this run fails if the process is killed."""
    program = "import pickle, sys, pointset.comparison.comparing as c; c.run_one(pickle.load(sys.stdin.buffer))"
    # These variables limit the threads of numpy's libraries. joblib sets the same variables for its workers.
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(run.experiment.threads))}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, input=pickle.dumps(run), stderr=subprocess.PIPE, env=env, check=False)
    if ended.returncode < 0:
        return run.failed("its process was killed, perhaps for lack of memory: use fewer workers")
    if ended.returncode > 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        return run.failed(f"its process ended with code {ended.returncode}: {one_line(lines[-1], REPEATED)}")
    try:
        read = run.read()
    except PointsetError as error:  # a damaged file of this run does not stop the others
        return run.failed(str(error))
    if read.result is None and not read.reason:
        return run.failed(f"its process ended without a result or an error in {run.folder}: is the disk full?")
    return read


def _watched(runs: Sequence[Run], ending: Iterator[Run], progress: bool) -> Iterator[Run]:
    """Yield each run when it ends, and show how many runs have ended. On a terminal, also write a line for each run."""
    with progress_bar("comparing", "run", len(runs), show=progress) as bar, _moving(bar, runs):
        for run in ending:
            bar.update()
            if on_terminal() and not bar.disable:
                values = run.metrics if run.result else {}
                brief = [m for m in run.experiment.task.metrics if m.shown and m.brief and m.name in values]
                outcome = ", ".join(f"{metric.title} {metric.write(values[metric.name])}" for metric in brief)
                write_line(escaped(f"{run.name}: {outcome or f'failed: {run.reason}'}"))
            yield run


@contextmanager
def _moving(bar: Any, runs: Sequence[Run]) -> Iterator[None]:
    """Every few seconds, show how many epochs or steps all runs have finished."""
    experiment, ended = runs[0].experiment, Event()
    task = experiment.task

    def count() -> None:
        while not ended.wait(2.0 if on_terminal() else EVERY):
            done = sum(task.length(run.epochs, experiment.recipe) for run in runs)
            bar.set_description_str(f"comparing ({done:,} {task.unit} done)")

    if bar.disable:
        yield
        return
    thread = Thread(target=count, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
