"""Saved results of comparisons: files of a comparison's folder that are kept in results/ and read for the pages.

results/NAME has these files:

- table.md: the table of the comparison and the sentences below it; results.csv: its runs, as the comparison wrote them;
- robustness.csv, if the comparison measured robustness;
- about.json: command, commit, machine, and the values of each row that the pages use;
- predictions.npz, for classifiers: `predicted` [runs, shapes], the predicted class of each test shape in the order of
  the lines of results.csv, and `labels` [shapes];
- reading.md, optional: a discussion of the table.
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
"""Options of a command that change no result."""
TABLES = ("table.md", "results.csv", "robustness.csv")
RESULTS_JSON = "results.json"
PREDICTIONS = "predictions.npz"
COST = tuple(field.name for field in fields(Cost))
CLASSIFICATION = "classification"
LEVEL = 0.05
"""Significance level of comparisons."""


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
        raise PointsetError(f"the runs in {comparison} have different test shapes: start their command again")
    predicted = np.stack([run["logits"].argmax(axis=1) for run in runs]).astype(np.uint8)
    np.savez_compressed(kept / PREDICTIONS, predicted=predicted, labels=labels)


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
    return pair["significant"] or (pair["p_runs"] is not None and pair["p_runs"] < LEVEL)


def write_study(name: str, rows: Sequence[Mapping[str, Any]], tables: Iterable[str]) -> None:
    """Write the lines of a study to results.csv, and replace the tables in its study.md."""
    write_csv(RESULTS / name / "results.csv", rows)
    write_tables(name, tables)


def kept_rows(name: str) -> list[dict[str, str]]:
    """The lines of results.csv of a study that may be unfinished."""
    file = RESULTS / name / "results.csv"
    return read_csv(file) if file.exists() else []


def keep_row(name: str, row: Mapping[str, Any]) -> None:
    """Append a line to the results.csv of a study, so that the same command can continue, and print it."""
    write_csv(RESULTS / name / "results.csv", [*kept_rows(name), row])
    print(*row.values(), flush=True)


def write_tables(name: str, tables: Iterable[str]) -> None:
    """Replace the first tables in the study.md of a study, in their order."""
    file, following = RESULTS / name / "study.md", iter(tables)
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"(?m)(^\|.*\n)+", lambda old: f"{table}\n" if (table := next(following, "")) else old[0], text)
    file.write_text(text, encoding="utf-8")


def read_csv(file: Path) -> list[dict[str, str]]:
    """The lines of a CSV file, as texts."""
    return pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")


def write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file with the columns of the first row."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=list(rows[0]), dtype=object).to_csv(file, index=False)


def write_json(file: Path, content: Any) -> None:
    """Write indented JSON."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


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
