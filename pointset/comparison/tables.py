"""The tables of a comparison: as text, and as files (table.md, CSV and JSON)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pointset.errors import escaped, in_markdown
from pointset.runs import digests
from pointset.runs.provenance import command, origin
from pointset.runs.spreadsheets import as_csv

if TYPE_CHECKING:
    from jinja2 import Environment

    from pointset.comparison.metric import Metric, Row
    from pointset.comparison.results import Comparison

RESULT_FILES = ("report.html", "table.md", "results.csv", "results.json")
COSTS = ("parameters", "M mult-adds", "ms a set", "step MB", "train s")
NOT_BRIEF = ("M mult-adds", "ms a set", "step MB")
"""Columns that are left out on a terminal, for lack of room."""
NO_COST = "-"
"""Cell of a cost that a row does not have, beside rows that have it."""
TEXT_COLUMNS = ("model", "against the best", "pair", "class")
"""Columns of text, which are left-aligned, as all verdicts are."""
ColumnGroup = Literal["all", "metrics", "costs"]
Table = list[dict[str, Any]]
"""Rows of a table; the keys of the first are its header."""


def make_table(rows: Sequence[Row], metrics: Sequence[Metric], style: str = "simple", brief: bool = False) -> str:
    """Format rows as a table in one of tabulate's formats; `brief` leaves out columns that do not fit a terminal."""
    table = make_cells(rows, metrics, brief)
    return format_table(table, style, ["left" if is_words(name) else "right" for name in table[0]])


def format_table(table: Table, style: str = "simple", align: Sequence[str] | None = None) -> str:
    """Format a table of texts in one of tabulate's formats, its header and cells as by `in_table`."""
    from tabulate import tabulate

    lines = [[in_table(text, style) for text in texts] for texts in (table[0], *(row.values() for row in table))]
    return tabulate(lines[1:], lines[0], tablefmt=style, colalign=align, disable_numparse=True)


def is_words(column: str) -> bool:
    """True if a column with this header holds text rather than numbers."""
    return column in TEXT_COLUMNS or "verdict" in column


def make_cells(rows: Sequence[Row], metrics: Sequence[Metric], brief: bool = False, part: ColumnGroup = "all") -> Table:
    """The cells of `make_table`; empty columns, and sizes and seeds that are equal for all rows, are left out."""
    absent = NO_COST if any(row.cost for row in rows) else ""
    columns = {
        "model": [row.model for row in rows],
        "points": [f"{row.points:,}" for row in rows] if len({row.points for row in rows}) > 1 else [],
        "seeds": [str(row.seeds) for row in rows] if len({row.seeds for row in rows}) > 1 else [],
        **_metric_columns(rows, metrics, brief),
        "parameters": [f"{row.parameters:,}" for row in rows],
        "M mult-adds": [_short(row.cost.multiply_adds / 1e6, 1) if row.cost else absent for row in rows],
        "ms a set": [f"{row.cost.latency_ms:.1f}" if row.cost else absent for row in rows],
        "step MB": [_short(row.cost.step_memory_mb, 0) if row.cost else absent for row in rows],
        "train s": [f"{row.seconds:,.0f}" for row in rows],
    }
    wanted = {"all": columns.keys(), "metrics": columns.keys() - COSTS, "costs": {"model", "points", *COSTS}}[part]
    left_out = NOT_BRIEF if brief else ()
    names = [name for name, column in columns.items() if any(column) and name in wanted and name not in left_out]
    return [{name: columns[name][number] for name in names} for number in range(len(rows))]


def _short(value: float, digits: int) -> str:
    """A value with this number of decimals, or with two significant digits below 1."""
    return f"{value:.{digits}f}" if value >= 1 else f"{value:.2g}"


def _metric_columns(rows: Sequence[Row], metrics: Sequence[Metric], brief: bool) -> dict[str, list[str]]:
    """The columns of all metrics; interval, published and verdict are prefixed by the metric if several have them."""
    columns: dict[str, list[str]] = {}
    several = sum(metric.detailed for metric in metrics) > 1
    for metric in metrics:
        if not metric.shown or (brief and not metric.brief):
            continue
        summaries = [row.metrics[metric.name] for row in rows]
        columns[metric.title] = [
            metric.write(summary.mean, summary.deviation if metric.spread else None) for summary in summaries
        ]
        lead, unit = f"{metric.name} " * several, " %" * metric.share
        if metric.detailed and not brief:
            columns[f"{lead}95 % interval"] = [metric.write_interval(summary.interval) for summary in summaries]
        if metric == metrics[0] and len({row.model for row in rows}) > 1:
            columns["against the best"] = [row.against_best(metric) for row in rows]
        if metric.detailed:
            columns[f"{lead}published{unit}"] = [
                summary.published.write(metric) if summary.published else "" for summary in summaries
            ]
            columns[f"{lead}verdict"] = [summary.verdict(metric) for summary in summaries]
    return columns


def templates() -> Environment:
    """The templates of pages; they escape what is inserted."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(
        loader=PackageLoader("pointset.comparison", "report"), undefined=StrictUndefined, **options
    )
    environment.tests["words"] = is_words
    return environment


def in_table(text: str, style: str) -> str:
    """Escape text for a table cell in one of tabulate's formats, so that Markdown shows it literally, on one line."""
    return in_markdown(text) if style == "github" else escaped(text)


def save_tables(comparison: Comparison) -> None:
    """Write table.md, results.csv, results.json, and further CSV files of the task, into the comparison's folder."""
    task, folder = comparison.experiment.task, comparison.folder
    names = {metric.name for metric in comparison.metrics}
    tables: dict[str, Table] = {"results.csv": []}
    for run in comparison.runs:
        result = run.result
        columns = {name: value for name, value in run.place.items() if value is not None}
        tables["results.csv"].append(
            {
                **columns,
                **{name: value for name, value in run.metrics.items() if name in names},
                "parameters": result.parameters,
                "seconds": result.seconds,
                task.unit: result.length,
                task.sets_are: result.tested,
            }
        )
        for name, rows in task.tables(run.folder, columns).items():
            tables.setdefault(name, []).extend(rows)
    for name, rows in tables.items():
        digests.write_text(folder / name, as_csv(rows))
    digests.write_text(folder / "table.md", f"{comparison.table('github')}\n\n{comparison.caption()}\n")
    digests.write_json(folder / "results.json", as_dict(comparison))


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison as plain data: rows, pairs, runs, failures, configuration and origins."""
    first = comparison.metrics[0]
    return {
        "rows": [{**asdict(row), "against_best": row.against_best(first)} for row in comparison.rows],
        "pairs": {
            str(size or "all"): [{**asdict(pair), "distinguishable": pair.distinguishable} for pair in pairs]
            for size, pairs in comparison.pairs.items()
        },
        "runs": [run.as_dict() for run in comparison.runs],
        "failures": [{**run.place, "reason": run.reason} for run in comparison.failures],
        "configuration": comparison.experiment.as_dict(),
        "origins": origins(comparison),
        **origin(),
        "command": command(),
    }


def origins(comparison: Comparison) -> list[dict[str, Any]]:
    """The distinct combinations of versions, machine and commit that made the runs, each with its number of runs."""
    from pointset.training.checkpoints import RunFolder  # it loads torch, a verdict without runs needs none

    origins: list[dict[str, Any]] = []
    for run in comparison.runs:
        about = RunFolder(run.folder).description()
        own = {name: about.get(name) for name in ("versions", "machine", "commit")}
        same = next((other for other in origins if own.items() <= other.items()), None)
        if same is None:
            origins.append({**own, "runs": 1})
        else:
            same["runs"] += 1
    return origins


def commit_of(origin: Mapping[str, Any]) -> str:
    """The commit of one of the `origins`, or its version if no commit is known."""
    return origin["commit"] or f"pointset {(origin['versions'] or {}).get('pointset', 'of an unrecorded version')}"


def machine_of(origin: Mapping[str, Any]) -> str:
    """The machine of one of the `origins`, as text."""
    if (machine := origin["machine"]) is None:
        return "an unrecorded machine"
    return f"{machine['system']}, {machine['cores']} cores, {machine['accelerator'] or 'no GPU'}"
