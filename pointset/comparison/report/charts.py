"""The charts that every report has: each takes evidence and returns a matplotlib figure, or None without data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.comparison.evidence import Evidence
from pointset.comparison.metric import Metric
from pointset.comparison.rows import Row, Summary
from pointset.viz.charts import COLORS, label_axes, line_style, make_panels, with_legend
from pointset.viz.frontier import Dot, draw_frontier, name_frontier, pair_legend, pair_styles
from pointset.viz.sheet import FAINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PUBLISHED = "dash: published"
MULTIPLY_ADDS = "M multiply-adds of a set"
SECONDS = "training seconds"
ROOM = 0.35
"""The share of an axis that what is drawn on it keeps when a baseline is added."""
START = 0.2
"""The share of a training that may lie outside a panel: early values are far from all later ones."""


def style(evidence: Evidence, label: str) -> dict[str, Any]:
    """How a row is drawn on every chart of the report; many rows share colours by encoder and markers by pooling."""
    if not _are_many(evidence):
        return line_style(list(evidence.parts).index(label))
    return {"markersize": 4, **pair_styles([*evidence.parts.values()])[evidence.parts[label]]}


def _are_many(evidence: Evidence) -> bool:
    return len(evidence.parts) > len(COLORS)


def legend(figure: Figure, evidence: Evidence, labels: Iterable[str], more: Mapping[str, Any] | None = None) -> Figure:
    """The figure with a legend of these rows under it, and of what else is on it."""
    styles = {label: style(evidence, label) for label in labels}
    if _are_many(evidence):
        styles = pair_legend({evidence.parts[label]: one for label, one in styles.items()})
    return with_legend(figure, {**styles, **(more or {})})


def learning_curves(
    evidence: Evidence,
    columns: Mapping[str, str],
    places: Callable[[int], Sequence[float]],
    unit: str,
    *,
    scale: float = 1.0,
    fitted: bool = False,
    level: bool = False,
) -> Figure | None:
    """Columns of the training histories in panels: means over seeds, in bands from the lowest to the highest seed.

    Args:
        evidence: of one size.
        columns: of the histories, and what they are called; those that no history has are left out.
        places: from the length of a history to where its lines stand, in `unit`.
        unit: of a training's length.
        scale: what values are multiplied by.
        fitted: whether the beginning of a curve may leave its panel, so that the rest can be seen, and a dash at the
            right marks what is published of a row, however long that was trained.
        level: whether all columns are the metric on one axis, which has lines for what needs no model.
    """
    found = {name: {label: evidence.curves(label, name) for label in evidence} for name in columns}
    found = {name: curves for name, curves in found.items() if any(curves.values())}
    if not found:
        return None
    figure, panels = make_panels(len(found), 2 if len(found) < 3 else 3, 2.6, sharey=level)
    marked = False
    for axes, (name, curves) in zip(panels, found.items(), strict=True):
        for label, by_seed in curves.items():
            _curve(axes, scale * np.array(by_seed), places, style(evidence, label)["color"], _are_many(evidence))
        marks = _published(evidence, name) if fitted else {}
        for label, mean in marks.items():
            color = style(evidence, label)["color"]
            axes.plot([0.97, 1.0], [scale * mean] * 2, color=color, lw=1.8, transform=axes.get_yaxis_transform())
        marked = marked or bool(marks)
        if fitted:
            _fit(axes, [curve for by_seed in curves.values() for curve in by_seed], [*marks.values()])
        label_axes(axes, unit, columns[name])
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for axes in panels if level else []:
        draw_baselines(axes, evidence)
    return legend(figure, evidence, evidence, {PUBLISHED: {"color": FAINT}} if marked else None)


def _curve(axes: Axes, by_seed: Any, places: Callable[[int], Sequence[float]], color: str, many: bool) -> None:
    """The mean of curves [seeds, length], and their band unless it would be one of too many."""
    if not by_seed.size:
        return
    x = places(by_seed.shape[1])
    marker = "o" if len(x) == 1 else None  # a line of one point would be invisible
    axes.plot(x, by_seed.mean(axis=0), color=color, lw=1.2, marker=marker, markersize=4)
    if len(by_seed) > 1 and not many:
        axes.fill_between(x, by_seed.min(axis=0), by_seed.max(axis=0), color=color, alpha=0.18, lw=0)


def draw_baselines(axes: Axes, evidence: Evidence) -> None:
    """Lines at what the metric is without a model, where the axes have room; call it when all else is on them."""
    heights = {name: _scale(evidence.metric) * value for name, value in evidence.baselines.items()}
    low, high = axes.get_ylim()
    bottom, top = min([low, *heights.values()]), max([high, *heights.values()])
    if not heights or high - low < ROOM * (top - bottom):
        return
    axes.set_ylim(bottom - (0.04 * (top - bottom) if bottom < low else 0.0), top)
    across, words = axes.get_yaxis_transform(), ""
    for name, height in sorted(heights.items(), key=lambda pair: pair[1]):
        axes.hlines([height], 0, 1, transform=across, color=FAINT, lw=0.8, ls=(0, (4, 3)), zorder=1)
        words = f"{name} {height:.1f}" + (f", {words}" if words else "")
    # In one line over the highest: they are often too close to one another for a line each.
    axes.text(0.995, max(heights.values()), words, transform=across, fontsize=6.5, color=FAINT, ha="right", va="bottom")


def _published(evidence: Evidence, name: str) -> dict[str, float]:
    """What is published of the rows, by label, where a column of the history is a metric."""
    summaries = {label: row.metrics.get(name) for label, row in evidence.rows.items()}
    return {label: one.published.mean for label, one in summaries.items() if one and one.published}


def _fit(axes: Axes, curves: Sequence[Sequence[float]], marks: Sequence[float]) -> None:
    """Limit the heights to the published values and the curves without their start."""
    shown = np.concatenate([[*curve[int(START * len(curve)) :]] for curve in curves] + [marks])
    low, high = float(shown.min()), float(shown.max())
    if np.isfinite([low, high]).all() and high > low:
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def trained_sizes(evidences: Sequence[Evidence]) -> Figure:
    """The first metric of models trained and tested at each of several sizes, with 95 % intervals over seeds."""
    metric, scale = evidences[0].metric, _scale(evidences[0].metric)
    figure, (axes,) = make_panels(1, 1, 3.0)
    labels = list(dict.fromkeys(label for evidence in evidences for label in evidence))
    for label in labels:
        having = [evidence for evidence in evidences if label in evidence.rows]
        summaries = [evidence.rows[label].metrics[metric.name] for evidence in having]
        reach = np.transpose([_reach(one, scale) for one in summaries])
        places, heights = [evidence.points or 0 for evidence in having], [scale * one.mean for one in summaries]
        axes.errorbar(places, heights, reach, lw=1.2, capsize=2, **style(evidences[0], label))
    axes.set_xscale("log")
    axes.set_xticks(
        [evidence.points or 0 for evidence in evidences], [f"{evidence.points:,}" for evidence in evidences]
    )
    axes.minorticks_off()
    draw_baselines(axes, evidences[0])
    label_axes(axes, "points of a set, in training and test", metric.title)
    return legend(figure, evidences[0], labels)


def pareto(evidence: Evidence) -> Figure | None:
    """The first metric against multiply-adds and against training time, with the frontier drawn and named."""
    metric = evidence.metric
    rows = [row for row in evidence.rows.values() if row.cost]
    if len(rows) < 2:
        return None
    figure, panels = make_panels(2, 1 if _are_many(evidence) else 2, 3.2)
    costs: tuple[tuple[str, list[float]], ...] = (
        (MULTIPLY_ADDS, [row.cost.multiply_adds / 1e6 for row in rows if row.cost]),
        (SECONDS, [row.seconds for row in rows]),
    )
    drawn = []
    for axes, (label, cost) in zip(panels, costs, strict=True):
        dots = [_dot(row, metric, x, style(evidence, row.model)) for row, x in zip(rows, cost, strict=True)]
        draw_frontier(axes, dots, metric.higher_is_better)
        draw_baselines(axes, evidence)
        label_axes(axes, label, metric.title)
        drawn.append((axes, dots))
    legend(figure, evidence, [row.model for row in rows])
    for axes, dots in drawn:
        name_frontier(axes, dots, metric.higher_is_better)
    return figure


def _dot(row: Row, metric: Metric, cost: float, style: Mapping[str, Any]) -> Dot:
    scale, found = _scale(metric), row.metrics[metric.name]
    down, up = _reach(found, scale)
    mean = scale * found.mean
    return Dot(row.model, cost, mean, mean - down, mean + up, style)


def _scale(metric: Metric) -> float:
    return 100.0 if metric.share else 1.0


def _reach(found: Summary, scale: float) -> tuple[float, float]:
    """How far an interval goes down and up from its mean."""
    if found.interval is None:
        return 0.0, 0.0
    return scale * (found.mean - found.interval.low), scale * (found.interval.high - found.mean)
