"""Shared by `pointset compare` and `pointset task`: run an experiment, or show its state."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointset.commands.options import Running
from pointset.commands.printing import in_hours, print_json, print_rows
from pointset.errors import PointsetError, quoted

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment
    from pointset.comparison.results import Comparison
    from pointset.comparison.status import Estimate, State
    from pointset.runs.workers import Workers


def changed(experiment: "Experiment", labels: tuple[str, ...] | None, **changes: Any) -> "Experiment":
    """The experiment, changed by the flags; a flag that was not given is None.

    Raises:
        PointsetError: a label is not a row of the experiment.
    """
    found = {name: value for name, value in changes.items() if value is not None}
    if labels is not None:
        if unknown := set(labels) - set(experiment.labels):
            known = ", ".join(experiment.labels)
            raise PointsetError(f"{quoted(sorted(unknown)[0])} is not a row of the experiment: choose from {known}")
        found["models"] = tuple(entry for entry in experiment.models if entry.label in labels)
        found["published"] = {label: rows for label, rows in experiment.published.items() if label in labels}
    return experiment.changed(**found)


def run_or_look(experiment: "Experiment", out: Path, running: Running, as_json: bool) -> None:
    """Run an experiment, or print its state or an estimate of its time, or report its finished runs."""
    if running.status:
        from pointset.comparison.status import status

        print_rows([_state(one, experiment, as_json) for one in status(experiment, out)], as_json)
    elif running.dry_run:
        from pointset.comparison.status import estimate

        print_estimate(estimate(experiment, out), experiment.threads, running.found(), as_json)
    elif running.report:
        from pointset.comparison.comparing import report_finished

        print_result(report_finished(experiment, out), as_json)
    else:
        from pointset.comparison.comparing import run_experiment

        print_result(run_experiment(experiment, out, running.found()), as_json)


def _state(one: "State", experiment: "Experiment", as_json: bool) -> dict[str, Any]:
    """One row of the status table, with the names of the task."""
    row = asdict(one)
    found = row.pop("metrics") or {}
    shown = {name: found.get(name) for name in [metric.name for metric in experiment.task.measured]}
    if not as_json:
        shown = {
            metric.title: "" if metric.name not in found else metric.write(found[metric.name])
            for metric in experiment.task.measured
            if metric.shown and metric.brief
        }
    before = {
        experiment.task.unit if name == "done" else name: value for name, value in row.items() if name != "reason"
    }
    return {name: value for name, value in before.items() if value is not None} | shown | {"reason": one.reason}


def print_result(result: "Comparison", as_json: bool) -> None:
    """Print the table and where it is saved.

    Raises:
        PointsetError: some runs failed; they are named.
    """
    from pointset.comparison.tables import FILES
    from pointset.runs import digests

    if as_json:
        print(digests.read_text(result.folder / "results.json", "run the same command again"))
    else:
        print(result.caption())
        print(result.table(brief=True))
        print(f"saved in {result.folder}: {', '.join(FILES)}")
        _print_next(result)
    if result.failures:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in result.failures)
        total = len(result.failures) + len(result.runs)
        raise PointsetError(
            f"{len(result.failures)} of {total} runs failed ({reasons}): run the same command to try again"
        )


def _print_next(result: "Comparison") -> None:
    """Print suggestions for the next command; without colours or prompts, so the output can be piped."""
    runs = [(result.run(one.model, one.seed, one.points), one.metrics) for one in result.runs]
    report = shlex.quote(str(result.folder / "report.html"))
    print("next:")
    for command in [f"python -m webbrowser {report}", *result.experiment.task.next_commands(runs)]:
        print(f"  {command}")


def print_estimate(found: "Sequence[Estimate]", threads: int, workers: "Workers", as_json: bool) -> None:
    """Print the remaining runs and an estimate of their time."""
    seconds = sum(one.seconds for one in found)
    count = workers.at_once(sum(one.runs for one in found), threads)
    # At least as long as the longest run.
    together = max([seconds / count, *(one.seconds / one.runs for one in found)])
    if as_json:
        print_json({"runs": [asdict(one) for one in found], "seconds": seconds, "workers": count})
        return
    print_rows([_in_words(one) for one in found])
    print(
        f"{in_hours(seconds)} of training in total, about {in_hours(together)} with {count} at once; testing not "
        "included"
    )


def _in_words(left: "Estimate") -> dict[str, Any]:
    """One line of an estimate."""
    row = {"model": left.model, "points": left.points, "runs left": left.runs}
    step = f"{1000 * left.step_seconds:.1f}" if left.step_seconds else ""
    row |= {"ms a step": step, "time": in_hours(left.seconds) if left.seconds else "included in the other size"}
    return {name: value for name, value in row.items() if value is not None}
