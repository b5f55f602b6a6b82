"""Tables as text, Markdown and LaTeX, and the cells of the table of a comparison."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from pointset.comparison.metric import Metric, Row
from pointset.errors import PointsetError, escaped, in_markdown, quoted

COSTS = ("parameters", "M mult-adds", "ms a set", "train s")
NOT_BRIEF = ("M mult-adds", "ms a set")
"""Columns that are left out on a terminal, for lack of room."""
NO_COST = "-"
"""Cell for a cost that this model does not have and other models have."""
TEXT_COLUMNS = ("model", "against the best", "pair", "class")
"""Headers of text columns, which are left-aligned. `is_words` accepts further headers."""
ColumnGroup = Literal["all", "metrics", "costs"]
Table = list[dict[str, Any]]
"""Rows of a table. The keys of the first row are the header of the table."""


def format_table(table: Table, style: str = "simple", numbers_right: bool = False) -> str:
    """Format a table of texts in one of tabulate's formats. `in_table` escapes header and cells."""
    from tabulate import tabulate, tabulate_formats

    if style not in tabulate_formats:
        styles = ", ".join(["latex", *tabulate_formats])
        raise PointsetError(f"no style of tables is called {quoted(style)}: use one of {styles}, or read results.csv")
    align = ["right" if numbers_right and not is_words(name) else "left" for name in table[0]]
    lines = [[in_table(text, style) for text in texts] for texts in (table[0], *(row.values() for row in table))]
    return tabulate(lines[1:], lines[0], tablefmt=style, colalign=align, disable_numparse=True)


MINUS = re.compile(r"(?<![\w.)])-(?=\.?\d)")
"""The minus sign of a number, not a hyphen."""


BOLD = ("\N{LEFT ANGLE BRACKET WITH DOT}", "\N{RIGHT ANGLE BRACKET WITH DOT}")
"""Characters around the text of bold cells. `as_latex` replaces these characters."""


def as_latex(table: Table, caption: str = "", label: str = "") -> str:
    """Return a table of texts in LaTeX (booktabs). With a caption, it is a floating table with a label.

    Numbers are right-aligned, with minus signs. Text between the characters `BOLD` is bold.
    """
    text = format_table(table, "latex_booktabs", numbers_right=True)
    text = re.sub(r"(?<=\\\\\n )(?=[\[*])", "{}", text)  # otherwise LaTeX takes [ or * for an option of the line end
    text = MINUS.sub("$-$", text).replace("±", r"$\pm$").replace(BOLD[0], r"\textbf{").replace(BOLD[1], "}")
    if not caption:
        return text + "\n"
    head = ["% needs \\usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{in_latex(caption)}}}"]
    return "\n".join([*head, rf"\label{{{label}}}", text, r"\end{table}"]) + "\n"


def in_latex(text: str) -> str:
    """Return text with the special characters of LaTeX escaped."""
    from tabulate import LATEX_ESCAPE_RULES

    return MINUS.sub("$-$", "".join(LATEX_ESCAPE_RULES.get(letter, letter) for letter in text)).replace("±", r"$\pm$")


def without_empty(table: Table) -> Table:
    """Return a table of texts without its empty columns."""
    filled = [name for name in (table[0] if table else ()) if any(row[name] for row in table)]
    return [{name: row[name] for name in filled} for row in table]


def is_words(column: str) -> bool:
    """Return True if a column with this header holds text rather than numbers."""
    return column in TEXT_COLUMNS or "against" in column or column == "conclusion"


def make_cells(rows: Sequence[Row], metrics: Sequence[Metric], brief: bool = False, part: ColumnGroup = "all") -> Table:
    """Return the cells of the table of a comparison. `brief` leaves out columns that do not fit a terminal.

    Empty columns are left out. Columns of set sizes and of numbers of seeds are left out if all rows are equal.
    """
    absent = NO_COST if any(row.cost for row in rows) else ""
    columns = {
        "model": [row.model for row in rows],
        "points": [f"{row.points:,}" for row in rows] if len({row.points for row in rows}) > 1 else [],
        "seeds": [str(row.seeds) for row in rows] if len({row.seeds for row in rows}) > 1 else [],
        **_metric_columns(rows, metrics, brief),
        "parameters": [f"{row.parameters:,}" for row in rows],
        "M mult-adds": [_short(row.cost.multiply_adds / 1e6) if row.cost else absent for row in rows],
        "ms a set": [f"{row.cost.latency_ms:.1f}" if row.cost else absent for row in rows],
        "train s": [f"{row.seconds:,.0f}" for row in rows],
    }
    wanted = {"all": columns.keys(), "metrics": columns.keys() - COSTS, "costs": {"model", "points", *COSTS}}[part]
    left_out = NOT_BRIEF if brief else ()
    names = [name for name, column in columns.items() if any(column) and name in wanted and name not in left_out]
    return [{name: columns[name][number] for name in names} for number in range(len(rows))]


def _short(value: float) -> str:
    """Return a value with one decimal, or with two significant digits if it is below 1."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _metric_columns(rows: Sequence[Row], metrics: Sequence[Metric], brief: bool) -> dict[str, list[str]]:
    """Return the columns of all metrics. If several metrics are detailed, headers begin with the metric's name.

    Metrics that are not detailed are left out if they equal the first metric in all rows, like the mean-class accuracy
    of balanced classes.
    """
    columns: dict[str, list[str]] = {}
    several, first = sum(metric.detailed for metric in metrics) > 1, metrics[0].name
    for metric in metrics:
        if not metric.shown or (brief and not metric.brief):
            continue
        summaries = [row.metrics[metric.name] for row in rows]
        pairs = [(summary.mean, row.metrics[first].mean) for row, summary in zip(rows, summaries, strict=True)]
        if not metric.detailed and all(math.isclose(*pair) for pair in pairs):
            continue
        columns[metric.title] = [
            metric.write(summary.mean, summary.deviation if metric.spread else None) for summary in summaries
        ]
        lead, unit = f"{metric.name} " * several, " %" * metric.share
        if metric.detailed and not brief:
            columns[f"{lead}95 % interval"] = [metric.write_interval(summary.interval) for summary in summaries]
        if metric == metrics[0] and len({row.model for row in rows}) > 1:
            columns["against the best"] = [row.against_best for row in rows]
        if metric.detailed:
            columns[f"{lead}published{unit}"] = [
                summary.published.write(metric) if summary.published else "" for summary in summaries
            ]
            columns[f"{lead}against published"] = [summary.against_published(metric) for summary in summaries]
    return columns


def in_table(text: str, style: str) -> str:
    """Escape the text of a cell for one of tabulate's formats. Markdown shows the text literally, on one line."""
    return in_markdown(text) if style == "github" else escaped(text)
