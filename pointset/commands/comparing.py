"""`pointset compare`: train several models under one protocol, and show one table."""

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
    Chosen,
    DataFlags,
    Given,
    ModelFlags,
    RecipeFlags,
    Running,
    RunningFlags,
)
from pointset.commands.terminal import Result
from pointset.configuration import COMMON
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, escaped, quoted
from pointset.runs.atomic import check_writable, write_atomically
from pointset.tasks.bundled import bundled_experiment
from pointset.training.recipe import Recipe
from pointset.viz.writing import STILL_SUFFIXES, save
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment
    from pointset.comparison.results import Comparison

EXPERIMENT = "experiment.json"
"""File in the folder of a comparison. `pointset.comparison.runs` has the same constant, but imports torch."""
TABLE_STYLES = {".tex": "latex", ".md": "github", ".html": "html"}


def compare(
    file: Annotated[str | None, COMMON] = None,
    /,
    *,
    models: Annotated[tuple[str, ...] | None, COMMON] = None,
    data: Annotated[str | None, COMMON] = None,
    seeds: Annotated[tuple[int, ...] | None, COMMON] = None,
    out: Annotated[tuple[Path, ...], COMMON, Parameter(name=OUT)] = (),
    running: Annotated[Running, RunningFlags] = Running(),
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),
    recipe: Annotated[Recipe, RecipeFlags] = Recipe(),
    given: Given,
) -> Result:
    """Train and test several models under one protocol; write a table and a report.

    Without FILE or --data, DeepSets and Set Transformers are compared on the generated dataset shapes10, in minutes.
    With --data, support vector machines on classical features and on embeddings, networks trained from scratch, and a
    fine-tuned network are compared, with another recipe.
    If interrupted, run the same command again to continue.

    Example: `pointset compare --data path/to/parts --models rff-max isab16-pma --points 256 --out runs/parts`

    Args:
        file: An experiment file (TOML), such as those in scripts/experiments, the folder of a comparison, or a set
            problem without meshes: max-regression, clustering, counting or anomaly. FILE sets all options. Only models,
            data, seeds, steps and threads can be changed by flags.
        models: Names of models from `pointset zoo`; with FILE, names of the rows of the table to run.
        data: Name of a dataset (see `pointset data list`), or a folder; default: shapes10.
        seeds: Seeds: each model is trained once per number of points and seed; default: 0 1 2.
        out: Folder for the runs, report.html, results.csv, results.json and table.md (default: runs/compare or
            runs/FILE); files for the table (.tex, .md or .html); and files for the figure of means and confidence
            intervals (.pdf, .svg or .png). If the folder has a comparison, it is continued with its saved options.
    """
    chosen = Chosen.by(given, data_options, model_options, recipe)
    written = [path for path in out if path.suffix.lower() in (*TABLE_STYLES, *STILL_SUFFIXES)]
    for path in written:
        check_writable(path)
    folders = [path for path in out if path not in written]
    if len(folders) > 1:
        raise PointsetError(f"--out has two folders, {folders[0]} and {folders[1]}: give one")
    if file is not None and (Path(file) / EXPERIMENT).exists():
        folders, file = [*folders, Path(file)], None
        if len(set(folders)) > 1:
            raise PointsetError(f"{folders[1]} is the folder of a comparison: leave out --out {folders[0]}")
    changes = {"seeds": seeds, "threads": running.threads}
    if file is not None:
        experiment = _from_file(file, models, chosen, changes | {"data": data})
    elif folders and data is None and not any(chosen) and (folders[0] / EXPERIMENT).exists():
        experiment = _from_folder(folders[0], models, changes)
    else:
        given_changes = {name: value for name, value in changes.items() if value is not None}
        experiment = _with_flags(data, models, chosen, given_changes)
    folder = folders[0] if folders else Path("runs") / ("compare" if file is None else Path(file).stem)
    return _run_or_report(experiment, folder, running, written)


def _from_folder(folder: Path, models: tuple[str, ...] | None, changes: dict[str, Any]) -> "Experiment":
    """Return the experiment of a comparison's folder, with the models, seeds and threads of the flags."""
    from pointset.comparison.experiment import Entry

    saved = pointset.tasks.read_experiment(folder)
    if models is not None:
        rows = {entry.label: entry for entry in saved.models}
        saved = saved.changed(models=tuple(rows.get(name, Entry.of(name)) for name in models))
    return _changed(saved, None, **changes)


def _from_file(file: str, models: tuple[str, ...] | None, chosen: Chosen, changes: dict[str, Any]) -> "Experiment":
    """Return the experiment of a file, or an experiment of the package by its name, with the changes of the flags."""
    path = Path(file)
    if path.is_dir():
        raise PointsetError(f"{path} is a folder, not an experiment file: write --data {shlex.quote(file)}")
    read = pointset.tasks.read_experiment(path if path.suffix or path.exists() else bundled_experiment(file))
    for name in (name for fields in chosen for name in fields if name != "steps"):
        raise PointsetError(f"{file} sets {name}: leave the flag out, or change the value in a copy of the file")
    if (steps := chosen.recipe.get("steps")) is not None:
        changes = {**changes, "recipe": replace(read.recipe, steps=steps)}
    return _changed(read, models, **changes)


def _with_flags(
    data: str | None, models: tuple[str, ...] | None, chosen: Chosen, changes: dict[str, Any]
) -> "Experiment":
    """Return the default experiment for a dataset, with the changes of the flags."""
    from pointset.tasks.experiments import SHAPES10, default_experiment

    sets, model, recipe = chosen
    return default_experiment(data or SHAPES10, models, sets=sets, model=model, recipe=recipe, **changes)


def _changed(experiment: "Experiment", labels: tuple[str, ...] | None, **changes: Any) -> "Experiment":
    """Return the experiment with the changes of the flags. None stands for an absent flag."""
    given = {name: value for name, value in changes.items() if value is not None}
    if labels is not None:
        if unknown := set(labels) - set(experiment.labels):
            known = ", ".join(experiment.labels)
            raise PointsetError(f"{quoted(sorted(unknown)[0])} is not a row of the experiment: choose from {known}")
        given["models"] = tuple(entry for entry in experiment.models if entry.label in labels)
        given["published"] = {label: rows for label, rows in experiment.published.items() if label in labels}
    return experiment.changed(**given) if given else experiment


def _run_or_report(experiment: "Experiment", out: Path, running: Running, output: Sequence[Path]) -> Result:
    """Run an experiment, or report its finished runs. Return the table, its files, and commands to run next.

    If runs failed, the result has an error, which is raised after the table is printed.
    """
    from pointset.comparison.comparing import RESULT_FILES, report_finished, run_experiment
    from pointset.comparison.results import as_dict

    comparison = report_finished(experiment, out) if running.report else run_experiment(experiment, out, running)
    for path in output:
        _write(comparison, path)
    page, failure = shlex.quote(str(out / "report.html")), None
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
        f"saved in {out}: {', '.join(RESULT_FILES)}{''.join(f'; {path}' for path in output)}",
        "next:",
        *(f"  {command}" for command in (f"python -m webbrowser {page}", *_next_commands(comparison))),
        *experiment.task.notes(),
        failure=failure,
    )


def _write(comparison: "Comparison", path: Path) -> None:
    """Write the table or the main figure of a comparison. The suffix of the path selects the format."""
    suffix = path.suffix.lower()
    if suffix in STILL_SUFFIXES:
        save(comparison.plot(), path)
        return
    text = comparison.to_latex() if suffix == ".tex" else comparison.table(TABLE_STYLES[suffix])
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))


def _next_commands(result: "Comparison") -> list[str]:
    """Return commands to evaluate the best classifier, and to draw the best classifier that has attention maps."""
    task = result.experiment.task
    if task.sets != "shapes":
        return []
    from pointset.zoo.names import parse_name

    first = task.metrics[0]
    ordered = sorted(result.runs, key=lambda run: -first.merit(run.metrics[first.name]))
    with_maps = [run for run in ordered if any(part.has_maps for part in parse_name(task.zoo_name(run.entry.name)))]
    commands = [["evaluate", "--model", ordered[0].folder]]
    if with_maps:
        commands += [["attend", "SHAPE.off", "--model", with_maps[0].folder]]
    return [shlex.join(["pointset", *map(str, words)]) for words in commands]
