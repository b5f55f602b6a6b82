"""Charts of a comparison's report, as matplotlib figures. A function returns None if its chart would have no data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Rectangle

from pointset.comparison.metric import Row
from pointset.comparison.ranking import Ranking
from pointset.comparison.task import Results
from pointset.viz.charts import (
    Dot,
    draw_frontier,
    label_axes,
    line_style,
    make_panels,
    pair_legend,
    pair_styles,
    plain_label,
    shorten,
    with_legend,
)
from pointset.viz.color import COLORS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MULTIPLY_ADDS = "M multiply-adds of a set"
SECONDS = "training seconds"
START_SHARE = 0.2
"""Curves may leave their panel in this first share of the epochs, because early values can be far from later ones."""
MOST_SHOWN = 20
"""Maximum number of models in the matrix, which shows the best models. The table has all models."""
NAME_WIDTH = 1.3
"""Width of the models' names in the matrix, in inches."""


def style(results: Results, label: str) -> dict[str, Any]:
    """Return the line style of a model. With many models, colour shows the encoder, and marker shape the pooling."""
    if not _are_many(results):
        return line_style(list(results.parts).index(label))
    return {"markersize": 4, **pair_styles([*results.parts.values()])[results.parts[label]]}


def _are_many(results: Results) -> bool:
    return len(results.parts) > len(COLORS)


def legend(figure: Figure, results: Results, labels: Iterable[str]) -> Figure:
    """Add a legend of the models with these labels below the figure."""
    styles = {label: style(results, label) for label in labels}
    if _are_many(results):
        styles = pair_legend({results.parts[label]: one for label, one in styles.items()})
    return with_legend(figure, styles)


def learning_curves(
    results: Results, columns: Mapping[str, str], place: Callable[[int], float], unit: str, shares: bool
) -> Figure | None:
    """Plot each column of the training histories in a panel: the mean over seeds, and a band from minimum to maximum.

    `columns` maps each column to its title, and `place` an epoch to its x coordinate. With `shares`, all columns are in
    per cent and share one y axis. Otherwise each panel has its own y axis, whose limits ignore the start of the curves.
    """
    by_name = {name: {label: results.curves(label, name) for label in results} for name in columns}
    by_name = {name: curves for name, curves in by_name.items() if any(curves.values())}
    if not by_name:
        return None
    figure, panels = make_panels(len(by_name), min(len(by_name), 3), 2.6, sharey=shares)
    for axes, (name, curves) in zip(panels, by_name.items(), strict=True):
        for label, by_seed in curves.items():
            if by_seed:
                values, color = (100 if shares else 1) * np.array(by_seed), style(results, label)["color"]
                x = [place(epoch + 1) for epoch in range(values.shape[1])]
                axes.plot(x, values.mean(axis=0), color=color, lw=1.2, marker="o" if len(x) == 1 else "", markersize=4)
                if len(values) > 1 and not _are_many(results):
                    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, lw=0)
        late = np.concatenate([curve[int(START_SHARE * len(curve)) :] for own in curves.values() for curve in own])
        if not shares and np.isfinite(late).all() and np.ptp(late) > 0:
            axes.set_ylim(late.min() - 0.05 * np.ptp(late), late.max() + 0.05 * np.ptp(late))
        label_axes(axes, unit, columns[name])
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return legend(figure, results, results)


def pareto(results: Results) -> Figure | None:
    """Plot the first metric against multiply-adds and against training time, with the Pareto frontier."""
    metric = results.metrics[0]
    costs = [(row, (row.cost.multiply_adds / 1e6, row.seconds)) for row in results.rows.values() if row.cost]
    if len(costs) < 2:
        return None

    def dot(row: Row, cost: float) -> Dot:
        summary = row.metrics[metric.name]
        mean, low, high = (metric.scale * value for value in (summary.mean, *summary.ends))
        return Dot(row.model, cost, mean, low, high, style(results, row.model))

    figure, panels = make_panels(2, 1 if _are_many(results) else 2, 3.2)
    for axes, label, number in zip(panels, (MULTIPLY_ADDS, SECONDS), (0, 1), strict=True):
        draw_frontier(axes, [dot(row, both[number]) for row, both in costs], metric.higher_is_better)
        if metric.share:
            axes.set_ylim(max(0.0, axes.get_ylim()[0]), min(100.0, axes.get_ylim()[1]))
        label_axes(axes, label, metric.title)
    return legend(figure, results, [row.model for row, _ in costs])


def draw_means(results: Results) -> Figure:
    """Draw each model's mean of the first metric with its 95 % interval, beginning with the best model."""
    metric, labels = results.metrics[0], results.best()
    figure, (axes,) = make_panels(1, 1, 0.6 + 0.25 * len(labels))
    for y, label in enumerate(labels):
        summary = results.rows[label].metrics[metric.name]
        axes.plot([metric.scale * end for end in summary.ends], [y, y], color=COLORS[0], lw=1.2)
        axes.plot([metric.scale * summary.mean], [y], "o", color=COLORS[0], markersize=4)
    label_axes(axes, metric.title, "")
    axes.set_yticks(range(len(labels)), [plain_label(shorten(label, 2 * NAME_WIDTH, 7)) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    return figure


def draw_matrix(ranking: Ranking) -> Figure | None:
    """Draw the differences of all pairs of the best models, row minus column, as a multiple comparison matrix.

    A cell is blue if the row's model is significantly better than the column's model, and orange if it is significantly
    worse. For a single model, None is returned.

    Source: Ismail-Fawaz et al., "An approach to multiple comparison benchmark evaluations" (arXiv 2305.11921).
    """
    rows = ranking.rows[:MOST_SHOWN]
    if len(rows) < 2:
        return None
    figure, (axes,) = make_panels(1, 1, 0.8 + 0.3 * len(rows))
    for (y, first), (x, second) in itertools.permutations(enumerate(rows), 2):
        pair = ranking.pair(first.model, second.model)
        if pair.significant:
            color = COLORS[0] if ranking.metric.merit(pair.difference) > 0 else COLORS[1]
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=color, alpha=0.3, lw=0))
        text = ranking.metric.write(pair.difference, sign="+").replace("-", "\N{MINUS SIGN}")
        weight, color = ("bold", INK) if pair.significant else ("normal", FAINT)
        axes.text(x, y, text, ha="center", va="center", fontsize=7, weight=weight, color=color)
    axes.set(xlim=(-0.5, len(rows) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    names = [plain_label(shorten(row.model, NAME_WIDTH, 7)) for row in rows]
    means = [ranking.metric.write(row.mean) for row in rows]
    axes.set_yticks(range(len(rows)), [f"{name}  {mean}" for name, mean in zip(names, means, strict=True)])
    axes.set_xticks(range(len(rows)), names, rotation=40, ha="left", rotation_mode="anchor")
    axes.tick_params(length=0, labelsize=7, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return figure
