"""Format the rows of a comparison as text tables."""

from collections.abc import Sequence
from typing import Literal

from pointset.comparison.markdown import in_table
from pointset.comparison.metric import Metric, Published
from pointset.comparison.rows import Row
from pointset.comparison.statistics import Interval

NAMES = ("model", "points")
COSTS = ("parameters", "M mult-adds", "ms a set", "step MB", "train s")
LEFT_OUT = ("M mult-adds", "ms a set", "step MB")
"""Columns that are left out on a terminal, for lack of room."""
Part = Literal["all", "metrics", "costs"]
WORDS = ("model", "against the best", "pair", "class")
"""Columns of text, which are left-aligned, as all verdicts are."""


def make_table(
    rows: Sequence[Row],
    metrics: Sequence[Metric],
    style: str = "simple",
    brief: bool = False,
    part: Part = "all",
    emphasized: bool = False,
) -> str:
    """Format rows as a text table; empty columns, and sizes and seeds that are equal for all rows, are left out.

    Args:
        rows: rows of a comparison.
        metrics: metrics of its task.
        style: one of tabulate's formats.
        brief: leave out columns that do not fit a terminal.
        part: all columns, only metrics, or only costs.
        emphasized: print the best row of each size in bold Markdown.
    """
    from tabulate import tabulate

    columns = make_columns(rows, metrics, brief, part)
    columns["model"] = [in_table(name, style) for name in columns["model"]]
    lines = [*zip(*columns.values(), strict=True)]
    if emphasized:
        bold = [tuple(f"**{cell}**" if cell else "" for cell in line) for line in lines]
        lines = [strong if row.best else line for row, line, strong in zip(rows, lines, bold, strict=True)]
    align = ["left" if is_words(name) else "right" for name in columns]
    return tabulate(lines, list(columns), tablefmt=style, colalign=align, disable_numparse=True)


def is_words(column: str) -> bool:
    """True if a column with this header holds text rather than numbers."""
    return column in WORDS or "verdict" in column


def make_columns(
    rows: Sequence[Row], metrics: Sequence[Metric], brief: bool = False, part: Part = "all"
) -> dict[str, list[str]]:
    """The cells of `make_table` by column header, without escapes."""
    against = [row.against_best(metrics[0]) for row in rows] if len({row.model for row in rows}) > 1 else []
    columns = {
        "model": [row.model for row in rows],
        "points": [f"{row.points:,}" for row in rows] if len({row.points for row in rows}) > 1 else [],
        "seeds": [str(row.seeds) for row in rows] if len({row.seeds for row in rows}) > 1 else [],
        **_metric_columns(rows, metrics, against, brief),
        "parameters": [f"{row.parameters:,}" for row in rows],
        "M mult-adds": [_short(row.cost.multiply_adds / 1e6, 1) if row.cost else "" for row in rows],
        "ms a set": [f"{row.cost.latency_ms:.1f}" if row.cost else "" for row in rows],
        "step MB": [_short(row.cost.step_memory_mb, 0) if row.cost else "" for row in rows],
        "train s": [f"{row.seconds:,.0f}" for row in rows],
    }
    left_out = {"all": (), "metrics": COSTS, "costs": [name for name in columns if name not in (*NAMES, *COSTS)]}[part]
    kept = {name: column for name, column in columns.items() if any(column) and name not in left_out}
    return {name: column for name, column in kept.items() if not (brief and name in LEFT_OUT)}


def _short(value: float, digits: int) -> str:
    """A value with this number of decimals, or with two significant digits below 1."""
    return f"{value:.{digits}f}" if value >= 1 else f"{value:.2g}"


def _metric_columns(
    rows: Sequence[Row], metrics: Sequence[Metric], against: list[str], brief: bool
) -> dict[str, list[str]]:
    """The columns of all metrics; interval, published and verdict are prefixed by the metric if several have them."""
    columns: dict[str, list[str]] = {}
    several = sum(metric.detailed for metric in metrics) > 1
    for metric in metrics:
        if not metric.shown or (brief and not metric.brief):
            continue
        found = [row.metrics[metric.name] for row in rows]
        columns[metric.title] = [metric.write(one.mean, one.deviation if metric.spread else None) for one in found]
        lead, unit = f"{metric.name} " * several, " %" * metric.share
        if metric.detailed and not brief:
            columns[f"{lead}95 % interval"] = [write_interval(one.interval, metric) for one in found]
        if metric == metrics[0]:
            columns["against the best"] = against
        if metric.detailed:
            columns[f"{lead}published{unit}"] = [_published(one.published, metric) for one in found]
            columns[f"{lead}verdict"] = [one.verdict(metric) for one in found]
    return columns


def _published(published: Published | None, metric: Metric) -> str:
    if published is None:
        return ""
    return metric.write(published.mean, published.deviation if published.runs > 1 else None)


def write_interval(found: Interval | None, metric: Metric) -> str:
    """An interval of a metric as text; empty for None."""
    return "" if found is None else f"{metric.write(found.low)} to {metric.write(found.high)}"
