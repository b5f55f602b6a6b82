"""The charts of every report: each function takes results and returns a matplotlib figure, or None without data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from pointset.comparison.metric import Row
from pointset.comparison.pairs import Pair
from pointset.comparison.task import Results
from pointset.comparison.verdict import Verdict
from pointset.viz.charts import (
    Dot,
    draw_frontier,
    label_axes,
    line_style,
    make_panels,
    name_frontier,
    pair_legend,
    pair_styles,
    plain_label,
    shorten,
    with_legend,
)
from pointset.viz.color import COLORS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MULTIPLY_ADDS = "M multiply-adds of a set"
SECONDS = "training seconds"
START_SHARE = 0.2
"""Initial share of a training that may be cut off from a panel, because its values are far from all later ones."""
MOST_SHOWN = 20
"""Models of a matrix, best first; the table has all."""
NAME_WIDTH = 1.3
"""Width of their names in inches."""


def style(results: Results, label: str) -> dict[str, Any]:
    """Line style of a row in all charts; with many rows, colours stand for encoders and markers for poolings."""
    if not _are_many(results):
        return line_style(list(results.parts).index(label))
    return {"markersize": 4, **pair_styles([*results.parts.values()])[results.parts[label]]}


def _are_many(results: Results) -> bool:
    return len(results.parts) > len(COLORS)


def legend(figure: Figure, results: Results, labels: Iterable[str]) -> Figure:
    """Add a legend of these rows below the figure."""
    styles = {label: style(results, label) for label in labels}
    if _are_many(results):
        styles = pair_legend({results.parts[label]: one for label, one in styles.items()})
    return with_legend(figure, styles)


def learning_curves(
    results: Results, columns: Mapping[str, str], place: Callable[[int], float], unit: str, shares: bool
) -> Figure | None:
    """Plot columns of the training histories, one panel each: the mean over seeds in a band from minimum to maximum.

    `columns` has their titles, `place` turns an epoch into its x coordinate. With `shares`, all columns are in per cent
    and share one y axis; else each y axis shows the curves without their start.
    """
    by_name = {name: {label: results.curves(label, name) for label in results} for name in columns}
    by_name = {name: curves for name, curves in by_name.items() if any(curves.values())}
    if not by_name:
        return None
    scale = 100 if shares else 1
    figure, panels = make_panels(len(by_name), 2 if len(by_name) < 3 else 3, 2.6, sharey=shares)
    for axes, (name, curves) in zip(panels, by_name.items(), strict=True):
        for label, by_seed in curves.items():
            _curve(axes, scale * np.array(by_seed), place, style(results, label)["color"], _are_many(results))
        if not shares:
            late = [curve[int(START_SHARE * len(curve)) :] for by_seed in curves.values() for curve in by_seed]
            low, high = np.min(np.concatenate(late)), np.max(np.concatenate(late))
            if np.isfinite([low, high]).all() and high > low:
                axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        label_axes(axes, unit, columns[name])
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return legend(figure, results, results)


def _curve(axes: Axes, by_seed: Any, place: Callable[[int], float], color: str, many: bool) -> None:
    """Plot the mean of curves [seeds, length] and, unless there are many rows, the band of their range."""
    if not by_seed.size:
        return
    x = [place(epoch + 1) for epoch in range(by_seed.shape[1])]
    marker = "o" if len(x) == 1 else None  # a line through a single point is invisible
    axes.plot(x, by_seed.mean(axis=0), color=color, lw=1.2, marker=marker, markersize=4)
    if len(by_seed) > 1 and not many:
        axes.fill_between(x, by_seed.min(axis=0), by_seed.max(axis=0), color=color, alpha=0.18, lw=0)


def pareto(results: Results) -> Figure | None:
    """Plot the first metric against multiply-adds and against training time, with a labelled Pareto frontier."""
    metric = results.metric
    rows = [row for row in results.rows.values() if row.cost]
    if len(rows) < 2:
        return None
    figure, panels = make_panels(2, 1 if _are_many(results) else 2, 3.2)
    drawn = {MULTIPLY_ADDS: [_dot(results, row, row.cost.multiply_adds / 1e6) for row in rows if row.cost]}
    drawn[SECONDS] = [_dot(results, row, row.seconds) for row in rows]
    for axes, (label, dots) in zip(panels, drawn.items(), strict=True):
        draw_frontier(axes, dots, metric.higher_is_better)
        if metric.share:
            low, high = axes.get_ylim()
            axes.set_ylim(max(0.0, low), min(100.0, high))
        label_axes(axes, label, metric.title)
    legend(figure, results, [row.model for row in rows])
    for axes, dots in zip(panels, drawn.values(), strict=True):
        name_frontier(axes, dots, metric.higher_is_better)
    return figure


def _dot(results: Results, row: Row, cost: float) -> Dot:
    scale, summary = 100 if results.metric.share else 1, row.metrics[results.metric.name]
    low, high = (summary.interval.low, summary.interval.high) if summary.interval else (summary.mean, summary.mean)
    return Dot(row.model, cost, scale * summary.mean, scale * low, scale * high, style(results, row.model))


def draw_matrix(verdict: Verdict) -> Figure | None:
    """Differences of all pairs of the best models, row minus column, as a multiple comparison matrix.

    Ismail-Fawaz et al., "An approach to multiple comparison benchmark evaluations" (arXiv 2305.11921). Blue: the row is
    distinguishably better; orange: worse. None for a single model.
    """
    rows = verdict.rows[:MOST_SHOWN]
    if len(rows) < 2:
        return None
    figure, (axes,) = make_panels(1, 1, 0.8 + 0.3 * len(rows))
    names = [plain_label(shorten(row.model, NAME_WIDTH, 7)) for row in rows]
    for y, first in enumerate(rows):
        for x, second in enumerate(rows):
            if x != y:
                _draw_cell(axes, x, y, verdict, verdict.pair(first.model, second.model))
    axes.set(xlim=(-0.5, len(rows) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    means = [verdict.metric.write(row.mean) for row in rows]
    axes.set_yticks(range(len(rows)), [f"{name}  {mean}" for name, mean in zip(names, means, strict=True)])
    axes.set_xticks(range(len(rows)), names, rotation=40, ha="left", rotation_mode="anchor")
    axes.tick_params(length=0, labelsize=7, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return figure


def _draw_cell(axes: Axes, x: int, y: int, verdict: Verdict, pair: Pair) -> None:
    text = verdict.metric.write(pair.difference, sign="+").replace("-", "\N{MINUS SIGN}")
    if pair.distinguishable:
        color = COLORS[0] if verdict.metric.merit(pair.difference) > 0 else COLORS[1]
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=color, alpha=0.3, lw=0))
    weight, color = ("bold", INK) if pair.distinguishable else ("normal", FAINT)
    axes.text(x, y, text, ha="center", va="center", fontsize=7, weight=weight, color=color)
