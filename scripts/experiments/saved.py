"""Saved results of comparisons: files of a comparison's folder that are kept in results/ and read for the pages.

results/NAME has these files:

- table.md: the table of the comparison and the sentences below it; results.csv: its runs, as the comparison wrote them;
- robustness.csv, if the comparison measured robustness;
- about.json: command, commit, machine, and the values of each row that the pages use;
- predictions.npz, for classifiers: `predicted` [runs, shapes], the predicted class of each test shape in the order of
  the lines of results.csv, and `labels` [shapes];
- reading.md, optional: a discussion of the table.
"""

import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from cyclopts import App
from tabulate import tabulate

from pointset import PointsetError
from pointset.comparison import Entry
from pointset.comparison.report.sections import commit_of, machine_of
from pointset.comparison.runs import of_size
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL
from pointset.evaluation import Cost
from pointset.evaluation.predictions import load_predictions
from pointset.runs.atomic import write_atomically
from pointset.runs.records import write_json, write_text
from pointset.runs.spreadsheets import as_csv, read_csv

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
PRIVATE = ("--out", "--workers")
"""Options of a command that change no result."""
TABLES = ("table.md", "results.csv", "robustness.csv")
RESULTS_JSON = "results.json"
PREDICTIONS = "predictions.npz"
COST = tuple(field.name for field in fields(Cost))
CLASSIFICATION = "classification"


@dataclass(frozen=True)
class SavedRow:
    """One row of a saved comparison of classifiers."""

    experiment: str
    label: str
    name: str
    """The zoo's."""
    points: int
    seeds: int
    mean: float
    """Of the accuracy over seeds, 0 to 1."""
    deviation: float | None
    low: float
    """Where the 95 % interval begins; the mean of a single seed."""
    high: float
    parameters: int
    multiply_adds: int | None
    """None for a baseline, as is the latency."""
    latency_ms: float | None
    seconds: float
    level: tuple[str, ...]
    """Labels of the rows of this size that do not differ significantly from it, or whose only runs do not."""
    step_memory_mb: float | None = None
    """Of comparisons that measured it."""

    @property
    def parts(self) -> tuple[str, str]:
        """Encoder and pooling; a whole model has no pooling."""
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
        """Its rows, in their order; none of a task other than classification."""
        given = ({**row, "level": tuple(row["level"])} for row in self.about["rows"])
        return [SavedRow(experiment=self.name, **row) for row in given]

    @property
    def table(self) -> str:
        """Its table, as Markdown."""
        return (self.folder / "table.md").read_text(encoding="utf-8").strip()

    @property
    def reading(self) -> list[str]:
        """The discussion of the table as Markdown, with links from the page; empty without reading.md."""
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
    """Copy the results of a comparison's folder that the pages use to results/NAME, and return that folder.

    Args:
        comparison: the folder.
        name: the name of the folder in `results`.
        notes: sentences that the page prints below the table.
        results: where results are kept, beside the experiments' files.

    Raises:
        PointsetError: the folder has no finished comparison, or some of its runs failed.
    """
    content, kept = _finished(comparison), results / name
    date = datetime.fromtimestamp((comparison / RESULTS_JSON).stat().st_mtime, UTC).date().isoformat()
    about = {**_origin(content), "rows": _rows(content), "date": date, "notes": list(notes)}
    kept.mkdir(parents=True, exist_ok=True)
    for one in (*TABLES, PREDICTIONS):
        (kept / one).unlink(missing_ok=True)
        if (comparison / one).exists():
            write_text(kept / one, (comparison / one).read_bytes().decode())
    if content["configuration"]["task"] == CLASSIFICATION:
        _keep_predictions(comparison, content, kept)
    write_json(kept / "about.json", about)
    return kept


def _keep_predictions(comparison: Path, content: Mapping[str, Any], kept: Path) -> None:
    entries = {entry.label: entry for entry in map(Entry.of, content["configuration"]["models"])}
    lines = read_csv(comparison / "results.csv")
    names = [f"{entries[line['model']].slug}{of_size(int(line['points']))}-seed{line['seed']}" for line in lines]
    runs = [load_predictions(comparison / "runs" / name) for name in names]
    if any(not np.array_equal(run.labels, runs[0].labels) for run in runs):
        raise PointsetError(f"the runs in {comparison} have different test shapes: start their command again")
    stream = io.BytesIO()
    predicted = np.stack([run.predictions for run in runs]).astype(np.uint8)
    np.savez_compressed(stream, predicted=predicted, labels=runs[0].labels)
    write_atomically(kept / PREDICTIONS, lambda temporary: temporary.write_bytes(stream.getvalue()))


def _finished(comparison: Path) -> dict[str, Any]:
    """The content of the results.json of a finished comparison."""
    file = comparison / RESULTS_JSON
    if not file.exists():
        raise PointsetError(f"{comparison} has no {RESULTS_JSON}: give the folder of a finished comparison")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if failed := content["failures"]:
        raise PointsetError(
            f"{comparison} has {len(failed)} runs that failed, {failed[0]['model']} first: start its command again"
        )
    return content


def _origin(content: Mapping[str, Any]) -> dict[str, Any]:
    """Title, data, command, commit and machine of a results.json."""
    configuration = content["configuration"]
    return {
        "title": configuration["title"],
        "data": Path(configuration.get("data", "")).name,
        "command": repeated(content["command"]),
        "commit": "; ".join(dict.fromkeys(map(commit_of, content["origins"]))),
        "machine": "; ".join(dict.fromkeys(map(machine_of, content["origins"]))),
        "threads": configuration["threads"],
        "precision": configuration["recipe"]["precision"],
    }


def _rows(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a results.json, as `SavedRow` has them; none of a task other than classification."""
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
    """True if two models, or with a single seed their only runs, differ significantly."""
    return pair["significant"] or (pair["p_runs"] is not None and pair["p_runs"] < SIGNIFICANCE_LEVEL)


def write_study(name: str, rows: Sequence[Mapping[str, Any]], tables: Iterable[str]) -> None:
    """Write the lines of a study to results.csv, and replace the tables in its study.md."""
    write_text(RESULTS / name / "results.csv", as_csv(rows))
    write_tables(name, tables)


def kept_rows(name: str) -> list[dict[str, str]]:
    """The lines of results.csv of a study that may be unfinished."""
    file = RESULTS / name / "results.csv"
    return read_csv(file) if file.exists() else []


def keep_row(name: str, row: Mapping[str, Any]) -> None:
    """Append a line to the results.csv of a study, so that the same command can continue, and print it."""
    (RESULTS / name).mkdir(parents=True, exist_ok=True)
    write_text(RESULTS / name / "results.csv", as_csv([*kept_rows(name), row]))
    print(*row.values(), flush=True)


def write_tables(name: str, tables: Iterable[str]) -> None:
    """Replace the tables in the study.md of a study, in their order."""
    file, following = RESULTS / name / "study.md", iter(tables)
    text = file.read_text(encoding="utf-8")
    write_text(file, re.sub(r"(^\|.*\n)+", lambda _: f"{next(following)}\n", text, flags=re.MULTILINE))


def study_table(lines: Iterable[Sequence[str]], heads: Sequence[str], left: int = 1, form: str = "github") -> str:
    """A Markdown table whose first columns are text, and the others numbers."""
    align = ["left" if column < left else "right" for column in range(len(heads))]
    return tabulate(lines, heads, tablefmt=form, disable_numparse=True, colalign=align)


def run(app: App) -> int:
    """Run a script; exit code 2, with one sentence, for a mistake."""
    try:
        return app() or 0
    except PointsetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def short(cost: float) -> str:
    """A number with one digit behind the point; below 1, with two significant ones."""
    return f"{cost:,.1f}" if cost >= 1 else f"{cost:.2g}"


def repeated(command: str) -> str:
    """A command as others can repeat it: without its output folder, and with a placeholder for the data folder."""
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
