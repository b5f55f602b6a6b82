"""How the rows of a set problem learn: a chart of the loss and of the watched figures over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.tasks.comparison import TaskComparison
from pointset.tasks.learning import BLOCK
from pointset.viz.charts import label_axes, line_style, make_panels, with_legend
from pointset.viz.sheet import FAINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOSS = "loss"
PUBLISHED = "dash: published"
START = 0.2
"""The share of a training that need not fit into a panel: what comes first is far from all that comes later."""


def draw_curves(comparison: TaskComparison) -> Figure:
    """The mean over seeds of the training loss, and of each figure that its task wants to be watched, in panels.

    A dash at the right is what is published of a row, however many steps that took.
    """
    histories = {row.model: _histories(comparison, row.model) for row in comparison.rows}
    watched = {key for runs in histories.values() for rows in runs for row in rows for key in row}
    metrics = [metric.name for metric in comparison.experiment.problem.metrics if metric.name in watched]
    places = {label: place for place, label in enumerate(comparison.experiment.labels)}
    colors = {label: line_style(places[label])["color"] for label in histories}
    figure, panels = make_panels(1 + len(metrics), 3, 2.6)
    for axes, name in zip(panels, [LOSS, *metrics], strict=True):
        curves = {label: _mean_curve(runs, name) for label, runs in histories.items()}
        for label, curve in curves.items():
            axes.plot(_steps(comparison, len(curve)), curve, color=colors[label], lw=1.2)
        marks = _published(comparison, list(curves), name)
        for label, mean in marks.items():
            axes.plot([0.97, 1.0], [mean, mean], color=colors[label], lw=1.8, transform=axes.get_yaxis_transform())
        _fit(axes, list(curves.values()), list(marks.values()))
        label_axes(axes, "steps", "training loss" if name == LOSS else name)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    known = {PUBLISHED: {"color": FAINT}} if any(comparison.experiment.published.values()) else {}
    return with_legend(figure, {label: {"color": color} for label, color in colors.items()} | known)


def _histories(comparison: TaskComparison, label: str) -> list[list[dict[str, Any]]]:
    return [comparison.history(label, cell.seed) for cell in comparison.cells if cell.model == label]


def _mean_curve(runs: Sequence[Sequence[Mapping[str, Any]]], name: str) -> list[float]:
    return [fmean(row[name] for row in rows) for rows in zip(*runs, strict=True)]


def _steps(comparison: TaskComparison, blocks: int) -> list[int]:
    """After how many steps the blocks ended; the last one may be shorter."""
    steps = comparison.experiment.recipe.steps
    assert steps is not None, "the experiment sees to it"
    return [min(steps, BLOCK * (block + 1)) for block in range(blocks)]


def _published(comparison: TaskComparison, labels: Sequence[str], name: str) -> dict[str, float]:
    published = comparison.experiment.published
    return {label: published[label][name].mean for label in labels if name in published.get(label, {})}


def _fit(axes: Axes, curves: Sequence[Sequence[float]], marks: Sequence[float]) -> None:
    """Heights that show the published figures, and all curves but for their start."""
    shown = np.concatenate([[*curve[int(START * len(curve)) :]] for curve in curves] + [marks])
    low, high = float(shown.min()), float(shown.max())
    if np.isfinite([low, high]).all() and high > low:
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
