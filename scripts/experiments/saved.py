"""Saved results of comparisons, from which page.py generates the pages.

`save` copies or writes these files of a finished comparison to results/NAME:

- table.md: the table of the comparison and the sentences below it.
- results.csv: a line for each run.
- robustness.csv, if the comparison measured robustness.
- about.json: command, commit and machine, and the values of each row of the table that the pages use.
- predictions.npz, for classifiers: `predicted` [runs, shapes] has the predicted class of each test shape, with the runs
  in the order of the lines of results.csv; `labels` [shapes] has the true classes.

A discussion of the table can be added as reading.md.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cyclopts import App
from tabulate import tabulate

from pointset import PointsetError
from pointset.comparison import Entry
from pointset.evaluation import Cost

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PRIVATE = ("--out", "--workers")
"""Options of `pointset compare` that do not change the results."""
TABLES = ("table.md", "results.csv", "robustness.csv")
RESULTS_JSON = "results.json"
PREDICTIONS = "predictions.npz"
COST = tuple(field.name for field in fields(Cost))
CLASSIFICATION = "classification"
LEVEL = 0.05
"""Significance level of the test of a comparison."""


@dataclass(frozen=True)
class SavedRow:
    """One row of the table of a saved comparison of classifiers."""

    experiment: str
    label: str
    name: str
    """Name in the zoo, without options."""
    points: int
    seeds: int
    mean: float
    """Mean accuracy over seeds, 0 to 1."""
    deviation: float | None
    low: float
    """Lower end of the 95 % interval; the mean if there is a single seed."""
    high: float
    parameters: int
    multiply_adds: int | None
    """None for a baseline, which has no latency either."""
    latency_ms: float | None
    seconds: float
    level: tuple[str, ...]
    """Labels of the rows at the same number of points that do not differ significantly from this row. Rows with a
    single seed are compared by their runs."""
    step_memory_mb: float | None = None
    """None if the comparison did not measure it."""

    @property
    def parts(self) -> tuple[str, str]:
        """Encoder and pooling, the two parts of the name; the pooling is empty if the name has one part."""
        encoder, _, pooling = self.name.partition("-")
        return encoder, pooling


@dataclass(frozen=True)
class Saved:
    """The saved results of one comparison."""

    name: str
    folder: Path
    about: Mapping[str, Any]

    @property
    def rows(self) -> list[SavedRow]:
        """The rows of the table, in their order; empty for tasks other than classification."""
        given = ({**row, "level": tuple(row["level"])} for row in self.about["rows"])
        return [SavedRow(experiment=self.name, **row) for row in given]

    @property
    def table(self) -> str:
        """The table and the sentences below it, as Markdown."""
        return (self.folder / "table.md").read_text(encoding="utf-8").strip()

    @property
    def reading(self) -> list[str]:
        """The discussion of the table, as Markdown; empty without reading.md."""
        file = self.folder / "reading.md"
        return [file.read_text(encoding="utf-8").strip()] if file.exists() else []


def read_all(results: Path = RESULTS) -> dict[str, Saved]:
    """All saved results, by name."""
    files = sorted(results.glob("*/about.json"))
    return {
        file.parent.name: Saved(file.parent.name, file.parent, json.loads(file.read_text(encoding="utf-8")))
        for file in files
    }


def save(comparison: Path, name: str, notes: tuple[str, ...] = (), results: Path = RESULTS) -> Path:
    """Copy the results of a finished comparison to results/NAME, and return that folder.

    Args:
        comparison: folder of the comparison.
        name: name of the new folder in `results`.
        notes: sentences that the page has below the table.
        results: folder of all saved results.

    Raises:
        PointsetError: the folder has no finished comparison, or at least one of its runs failed.
    """
    content, kept = _finished(comparison), results / name
    date = datetime.fromtimestamp((comparison / RESULTS_JSON).stat().st_mtime, UTC).date().isoformat()
    about = {**_origin(content), "rows": _rows(content), "date": date, "notes": list(notes)}
    kept.mkdir(parents=True, exist_ok=True)
    for one in (*TABLES, PREDICTIONS):
        (kept / one).unlink(missing_ok=True)
        if (comparison / one).exists():
            shutil.copyfile(comparison / one, kept / one)
    if content["configuration"]["task"] == CLASSIFICATION:
        _keep_predictions(comparison, content, kept)
    write_json(kept / "about.json", about)
    return kept


def _keep_predictions(comparison: Path, content: Mapping[str, Any], kept: Path) -> None:
    entries = {entry.label: entry for entry in map(Entry.of, content["configuration"]["models"])}
    lines = read_csv(comparison / "results.csv")
    names = [f"{entries[line['model']].slug}-n{line['points']}-seed{line['seed']}" for line in lines]
    runs = [np.load(comparison / "runs" / name / PREDICTIONS) for name in names]
    labels = runs[0]["labels"]
    if any(not np.array_equal(run["labels"], labels) for run in runs):
        raise PointsetError(f"the runs in {comparison} have different test shapes: run the comparison again")
    predicted = np.stack([run["logits"].argmax(axis=1) for run in runs]).astype(np.uint8)
    np.savez_compressed(kept / PREDICTIONS, predicted=predicted, labels=labels)


def _finished(comparison: Path) -> dict[str, Any]:
    """Return the content of results.json; raise a PointsetError if the comparison is not finished."""
    file = comparison / RESULTS_JSON
    if not file.exists():
        raise PointsetError(f"{comparison} has no {RESULTS_JSON}: give the folder of a finished comparison")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if failed := content["failures"]:
        raise PointsetError(
            f"{len(failed)} runs in {comparison} failed, the first of {failed[0]['model']}: run the comparison again"
        )
    return content


def _origin(content: Mapping[str, Any]) -> dict[str, Any]:
    """Title, data, command, commit, machine, threads and precision of the content of results.json."""
    configuration = content["configuration"]
    commits = [one["commit"] or f"pointset {one['versions']['pointset']}" for one in content["origins"]]
    machines = [one["machine"] for one in content["origins"]]
    described = [f"{m['system']}, {m['cores']} cores, {m['accelerator'] or 'no GPU'}" for m in machines]
    return {
        "title": configuration["title"],
        "data": Path(configuration.get("data", "")).name,
        "command": repeated(content["command"]),
        "commit": "; ".join(dict.fromkeys(commits)),
        "machine": "; ".join(dict.fromkeys(described)),
        "threads": configuration["threads"],
        "precision": configuration["recipe"]["precision"],
    }


def _rows(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of `SavedRow` for each row of results.json; empty for tasks other than classification."""
    configuration = content["configuration"]
    if configuration["task"] != CLASSIFICATION:
        return []
    names = {model["label"]: model["name"] for model in configuration["models"]}
    return [_row(row, names[row["model"]], content["pairs"]) for row in content["rows"]]


def _row(row: Mapping[str, Any], name: str, pairs: Mapping[str, Any]) -> dict[str, Any]:
    accuracy, label = row["metrics"]["accuracy"], row["model"]
    interval = accuracy["interval"] or {"low": accuracy["mean"], "high": accuracy["mean"]}
    level = [
        pair["second"] if pair["first"] == label else pair["first"]
        for pair in pairs.get(str(row["points"]), ())
        if label in (pair["first"], pair["second"]) and not _differ(pair)
    ]
    return {
        "label": label,
        "name": name,
        "points": row["points"],
        "seeds": row["seeds"],
        "mean": accuracy["mean"],
        "deviation": accuracy["deviation"],
        "low": interval["low"],
        "high": interval["high"],
        "parameters": row["parameters"],
        **(row["cost"] or dict.fromkeys(COST)),
        "seconds": round(row["seconds"], 1),
        "level": level,
    }


def _differ(pair: Mapping[str, Any]) -> bool:
    """True if two models differ significantly; models with a single seed are compared by their runs."""
    return pair["significant"] or (pair["p_runs"] is not None and pair["p_runs"] < LEVEL)


def write_study(name: str, rows: Sequence[Mapping[str, Any]], tables: Iterable[str]) -> None:
    """Write the rows of a study to its results.csv, and replace the tables in its study.md."""
    write_csv(RESULTS / name / "results.csv", rows)
    write_tables(name, tables)


def kept_rows(name: str) -> list[dict[str, str]]:
    """The rows of a study in results.csv; empty if the file does not exist yet."""
    file = RESULTS / name / "results.csv"
    return read_csv(file) if file.exists() else []


def keep_row(name: str, row: Mapping[str, Any]) -> None:
    """Print a row of a study and append it to results.csv, from which the same command continues."""
    write_csv(RESULTS / name / "results.csv", [*kept_rows(name), row])
    print(*row.values(), flush=True)


def write_tables(name: str, tables: Iterable[str]) -> None:
    """Replace the first tables in study.md of a study by `tables`, in their order."""
    file, following = RESULTS / name / "study.md", iter(tables)
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"(?m)(^\|.*\n)+", lambda old: f"{table}\n" if (table := next(following, "")) else old[0], text)
    file.write_text(text, encoding="utf-8")


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, with all values as strings."""
    return pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to a CSV file with the columns of the first row."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=list(rows[0]), dtype=object).to_csv(file, index=False)


def write_json(file: Path, content: Any) -> None:
    """Write indented JSON."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def study_table(lines: Iterable[Sequence[str]], heads: Sequence[str], left: int = 1, form: str = "github") -> str:
    """A Markdown table: the first `left` columns are aligned to the left, the others to the right."""
    align = ["left" if column < left else "right" for column in range(len(heads))]
    return tabulate(lines, heads, tablefmt=form, disable_numparse=True, colalign=align)


def run(app: App) -> int:
    """Run a script; for a PointsetError, print its message and return 2."""
    try:
        return app() or 0
    except PointsetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def short(cost: float) -> str:
    """The number with one decimal; with two significant digits if it is below 1."""
    return f"{cost:,.1f}" if cost >= 1 else f"{cost:.2g}"


def repeated(command: str) -> str:
    """The command without output folder and number of workers, and with a placeholder for the data folder."""
    words, kept = shlex.split(command), []
    for before, word in zip(["", *words], words, strict=False):
        if before in PRIVATE or word.partition("=")[0] in PRIVATE:
            continue
        if before == "--data" and os.sep in word:
            word = f"path/to/{re.sub(r'_1024$', '', Path(word).name)}"
        if word.endswith(".toml"):
            inside = [*FOLDER.rglob(Path(word).name)]
            word = inside[0].relative_to(FOLDER.parent.parent).as_posix() if inside else Path(word).name
        kept.append(word)
    return shlex.join(kept)
