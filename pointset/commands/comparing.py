"""`pointset compare`: many models, one protocol, one table."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import pointset
from pointset.commands.flags import (
    OUT,
    QUICK,
    Chosen,
    DataFlags,
    Given,
    ModelFlags,
    Options,
    RecipeFlags,
    Running,
    RunningFlags,
)
from pointset.commands.terminal import Result
from pointset.comparison.tables import Spreads
from pointset.configuration import COMMON
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, escaped, quoted
from pointset.runs.atomic import check_writable, write_for_user
from pointset.tasks.shipped import shipped_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment
    from pointset.comparison.results import Comparison

TABLE_STYLES = {".tex": "latex", ".md": "github", ".html": "html"}


def compare(
    file: Annotated[str | None, COMMON] = None,
    /,
    *,
    models: Annotated[tuple[str, ...] | None, COMMON] = None,
    data: Annotated[str | None, COMMON] = None,
    seeds: Annotated[tuple[int, ...] | None, COMMON] = None,
    out: Annotated[tuple[Path, ...], COMMON, Parameter(name=OUT)] = (),
    spread: Spreads = "both",
    running: Annotated[Running, RunningFlags] = Running(),
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),
    recipe: Annotated[Recipe, RecipeFlags] = Recipe(),
    given: Given,
) -> Result:
    """Train and test several models with several seeds under one protocol: one table, and a report.

    Without FILE, it compares DeepSets with Set Transformers on the embedded shapes10, in minutes; with --data, support
    vector machines on classical features and on embeddings, networks, and one that starts from trained weights, with a
    recipe for folders of one's own.
    If interrupted, run the same command again to continue.

    Example: `pointset compare --data path/to/parts --models rff-max isab16-pma --points 256 --out runs/parts`

    Args:
        file: An experiment file (TOML), such as those in scripts/experiments, or a set problem without meshes, whose
            published results stand beside ours: max-regression, clustering, counting or anomaly. It sets everything
            that affects the results; the flags --models, --data, --seeds, --steps and --threads can change that, and no
            others.
        models: Names from `pointset zoo`; with FILE, the rows to run.
        data: Name of a card, or a folder; default: shapes10.
        seeds: Seeds, one run per model, size and seed; default: 0 1 2.
        out: Folder for the runs, report.html, results.csv, results.json and table.md (default: runs/compare or
            runs/FILE), and files for the table: LaTeX (*.tex), Markdown (*.md) or HTML (*.html).
        spread: What these files show beside the mean: the deviation over seeds, the interval, or both.
    """
    chosen = Chosen.by(given, data_options, model_options, recipe)
    changes = {"data": data, "seeds": seeds, "threads": running.threads}
    if file is None:
        title = None if models is None and data is None else ""  # the file's speaks of its models and data
        experiment = _changed(_with_flags(data, models, chosen), None, **changes, title=title)
    else:
        experiment = _from_file(file, models, chosen, changes)
    tables = [path for path in out if path.suffix.lower() in TABLE_STYLES]
    for path in tables:
        check_writable(path)
    folders = [path for path in out if path not in tables]
    if len(folders) > 1:
        raise PointsetError(f"--out has two folders, {folders[0]} and {folders[1]}: give one")
    folder = folders[0] if folders else Path("runs") / ("compare" if file is None else Path(file).stem)
    return _run_or_report(experiment, folder, running, tables, spread)


def _from_file(file: str, models: tuple[str, ...] | None, chosen: Chosen, changes: dict[str, Any]) -> "Experiment":
    """The experiment of a file, or a shipped one by its name, changed by the flags that may change it."""
    path = Path(file)
    if path.is_dir():
        raise PointsetError(f"{path} is a folder, and no experiment file: write --data {shlex.quote(file)}")
    read = pointset.read_experiment(path if path.suffix or path.exists() else shipped_experiment(file))
    for name in (name for fields in chosen for name in fields if name != "steps"):
        raise PointsetError(f"{file} sets {name}: leave the flag out, or change the value in a copy of the file")
    if (steps := chosen.recipe.get("steps")) is not None:
        changes = {**changes, "recipe": replace(read.recipe, steps=steps)}
    return _changed(read, models, **changes)


def _with_flags(data: str | None, models: tuple[str, ...] | None, chosen: Chosen) -> "Experiment":
    """The experiment of quick.toml, on other data of own.toml, changed by the flags."""
    from pointset.comparison.experiment import Entry
    from pointset.tasks.classification import Classification

    name = "quick" if data in (None, QUICK["data"]) else "own"
    experiment = pointset.read_experiment(shipped_experiment(name))
    task = experiment.task
    assert isinstance(task, Classification)
    usual = Options(task.sets_of(task.points[0]), experiment.model, experiment.recipe)
    sets, model, recipe = usual.changed(chosen)
    rows = experiment.models if models is None else tuple(Entry(name) for name in models)
    return experiment.changed(models=rows, sets=sets, points=(sets.points,), model=model, recipe=recipe)


def _changed(experiment: "Experiment", labels: tuple[str, ...] | None, **changes: Any) -> "Experiment":
    """The experiment, changed by the flags; a flag that was not given is None."""
    given = {name: value for name, value in changes.items() if value is not None}
    if labels is not None:
        if unknown := set(labels) - set(experiment.labels):
            known = ", ".join(experiment.labels)
            raise PointsetError(f"{quoted(sorted(unknown)[0])} is not a row of the experiment: choose from {known}")
        given["models"] = tuple(entry for entry in experiment.models if entry.label in labels)
        given["published"] = {label: rows for label, rows in experiment.published.items() if label in labels}
    return experiment.changed(**given)


def _run_or_report(
    experiment: "Experiment", out: Path, running: Running, output: Sequence[Path], spread: Spreads
) -> Result:
    """Run an experiment, or report its finished runs: the table, where it is saved, and commands to run next.

    Failed runs are an error.
    """
    from pointset.comparison.comparing import RESULT_FILES, report_finished, run_experiment
    from pointset.comparison.results import as_dict
    from pointset.data.leakage import divided_groups, repeated_files
    from pointset.tasks.classification import Classification

    comparison = report_finished(experiment, out) if running.report else run_experiment(experiment, out, running)
    for path in output:
        text = comparison.table(TABLE_STYLES[path.suffix.lower()], spread=spread)
        write_for_user(path, partial(Path.write_text, data=text, encoding="utf-8"))
    page, notes, task, failure = shlex.quote(str(out / "report.html")), list[str](), experiment.task, None
    if isinstance(task, Classification):
        notes += [*repeated_files(task.data, task.sets), *divided_groups(task.load("train", task.points[0]))]
    if comparison.failures:
        reasons = "; ".join(f"{failure.name}: {failure.reason}" for failure in comparison.failures)
        count, total = len(comparison.failures), len(comparison.failures) + len(comparison.runs)
        failure = PointsetError(f"{count} of {total} runs failed ({reasons}): run the same command to try again")
    return Result(
        as_dict(comparison),
        comparison.caption(),
        *comparison.table(brief=True).splitlines(),
        "",
        *map(escaped, comparison.sentences()),
        f"saved in {out}: {', '.join(RESULT_FILES)}",
        "next:",
        *(f"  {command}" for command in (f"python -m webbrowser {page}", *_next_commands(comparison))),
        *notes,
        failure=failure,
    )


def _next_commands(result: "Comparison") -> list[str]:
    """Commands that evaluate the best classifier, and show the attention of the best one with any."""
    task = result.experiment.task
    if task.facts.sets != "shapes":
        return []
    from pointset.zoo.names import parse_name

    first = task.facts.metrics[0]
    ordered = sorted(result.runs, key=lambda run: -first.merit(run.metrics[first.name]))
    with_maps = [run for run in ordered if any(part.has_maps for part in parse_name(task.zoo_name(run.entry.name)))]
    commands = [["evaluate", "--model", ordered[0].folder]]
    if with_maps:
        commands += [["attend", "SHAPE.off", "--model", with_maps[0].folder]]
    return [shlex.join(["pointset", *map(str, words)]) for words in commands]
