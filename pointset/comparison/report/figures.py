"""The figures of a report: each takes the comparison, and returns a matplotlib figure or None for want of data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.comparison.report.evidence import Evidence
from pointset.comparison.tables import Row
from pointset.viz.charts import label_axes, line_style, log_axis, make_panels, plain, with_legend
from pointset.viz.sheet import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def style(evidence: Evidence, model: str) -> dict[str, Any]:
    """How a model is drawn on every figure of the report."""
    return line_style(evidence.comparison.experiment.labels.index(model))


def learning_curves(evidence: Evidence) -> Figure | None:
    """Training and, where there is a split for it, validation accuracy by epoch, mean over seeds."""
    curves = [name for name in ("accuracy", "validation_accuracy") if any(evidence.curve(m, name) for m in evidence)]
    figure, panels = make_panels(len(curves), 2, 2.6)
    for axes, name in zip(panels, curves, strict=True):
        for model in evidence:
            curve = evidence.curve(model, name)
            axes.plot(
                range(1, len(curve) + 1),
                [100 * value for value in curve],
                color=style(evidence, model)["color"],
                lw=1.2,
            )
        label_axes(axes, "epoch", f"{'validation' if 'valid' in name else 'training'} accuracy %")
    return _with_legend(figure, evidence, list(evidence)) if curves else None


def accuracy_by_size(evidence: Evidence) -> Figure | None:
    """Accuracy against the size of the test sets, for the size that models were trained at and below."""
    curves = {model: evidence.by_size(model) for model in evidence}
    if not any(curves.values()):
        return None
    figure, (axes,) = make_panels(1, 1, 3.0)
    for model, curve in curves.items():
        axes.plot(list(curve), [100 * value for value in curve.values()], lw=1.2, **style(evidence, model))
    axes.set_xscale("log", base=2)
    sizes = sorted({size for curve in curves.values() for size in curve})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    label_axes(axes, f"points of a test set (trained at {evidence.points:,})", "accuracy %")
    return _with_legend(figure, evidence, list(evidence))


def trained_sizes(evidences: Sequence[Evidence]) -> Figure | None:
    """Accuracy of models trained and tested at each of several sizes, with 95 % intervals over seeds."""
    if len(evidences) < 2:
        return None
    figure, (axes,) = make_panels(1, 1, 3.0)
    models = list(dict.fromkeys(model for evidence in evidences for model in evidence))
    for model in models:
        rows = [(evidence.points, evidence.rows[model]) for evidence in evidences if model in evidence.rows]
        heights = [100 * row.accuracy for _, row in rows]
        reach = np.transpose([_reach(row) for _, row in rows])
        axes.errorbar([points for points, _ in rows], heights, reach, lw=1.2, capsize=2, **style(evidences[0], model))
    axes.set_xscale("log")
    axes.set_xticks([evidence.points for evidence in evidences], [f"{evidence.points:,}" for evidence in evidences])
    axes.minorticks_off()
    label_axes(axes, "points of a set, in training and test", "accuracy %")
    return _with_legend(figure, evidences[0], models)


def robustness(evidence: Evidence) -> Figure | None:
    """Error by severity, a panel for each corruption; severity 0 is the clean test set."""
    errors = {model: found for model in evidence if (found := evidence.corruption_errors(model))}
    if not errors:
        return None
    names = list(next(iter(errors.values())))
    figure, panels = make_panels(len(names), 5, 1.3, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        for model in evidence:
            if model in errors:
                clean = fmean(one.clean_error for one in evidence.robustness(model).values())
                curve = [100 * error for error in (clean, *errors[model][name])]
                axes.plot(range(len(curve)), curve, color=style(evidence, model)["color"], lw=1.1)
        axes.set_title(name.replace("_", " "), fontsize=8, color=INK, pad=3)
        axes.set_xticks(range(6))
        label_axes(axes, "", "")
    panels[-1].set_xlabel("severity", fontsize=8, color=FAINT)
    figure.supylabel("error %", fontsize=8, color=FAINT)
    return _with_legend(figure, evidence, list(evidence))


def reliability(evidence: Evidence) -> Figure | None:
    """Accuracy against confidence, a panel for each model (first seed), dots as large as their share."""
    figure, panels = make_panels(len(evidence), 4, 1.75, sharey=True)
    for axes, model in zip(panels, evidence, strict=True):
        found, color = evidence.reliability(model), style(evidence, model)["color"]
        axes.plot([0, 1], [0, 1], color="#bbbbbb", lw=0.8)
        axes.plot(found.confidence, found.accuracy, color=color, lw=0.8)
        axes.scatter(found.confidence, found.accuracy, 4 + 120 * found.share, color=color, lw=0)
        axes.set_title(f"{plain(model)}: ECE {100 * found.error:.1f} %", fontsize=7.5, color=INK, pad=3)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        label_axes(axes, "", "")
    figure.supxlabel("confidence", fontsize=8, color=FAINT)
    figure.supylabel("share that is right", fontsize=8, color=FAINT)
    return figure


def pareto(evidence: Evidence) -> Figure | None:
    """Accuracy against multiply-adds and against training time; the line joins the rows that nothing beats on both."""
    rows = [row for row in evidence.rows.values() if row.cost]
    if len(rows) < 2:
        return None
    figure, panels = make_panels(2, 2, 2.8, sharey=True)
    costs: tuple[tuple[str, list[float]], ...] = (
        ("M multiply-adds of a set", [row.cost.multiply_adds / 1e6 for row in rows if row.cost]),
        ("training seconds", [row.seconds for row in rows]),
    )
    heights = [100 * row.accuracy for row in rows]
    for axes, (label, cost) in zip(panels, costs, strict=True):
        for row, x, y in zip(rows, cost, heights, strict=True):
            axes.errorbar([x], [y], np.transpose([_reach(row)]), capsize=2, lw=1, ls="", **style(evidence, row.model))
        front = sorted((x, y) for x, y in zip(cost, heights, strict=True) if not _beaten(x, y, cost, heights))
        axes.step(*zip(*front, strict=True), where="post", color="#bbbbbb", lw=1, zorder=0)
        log_axis(axes)
        label_axes(axes, label, "accuracy %" if axes is panels[0] else "")
    return _with_legend(figure, evidence, [row.model for row in rows])


def confusions(evidence: Evidence) -> Figure | None:
    """Confusion matrices of the two most accurate models (first seed), as shares of each true class."""
    best = sorted(evidence, key=lambda model: -evidence.rows[model].accuracy)[:2]
    classes = len(evidence.comparison.classes)
    figure, panels = make_panels(len(best), 2, 3.8 if classes > 12 else 3.4)
    size = max(3.0, min(8.0, 150 / max(classes, 1)))
    for axes, model in zip(panels, best, strict=True):
        counts = evidence.evaluation(model).confusion
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        axes.imshow(np.sqrt(shares), cmap="Greys", vmin=0, vmax=1)
        names = [plain(name.replace("_", " ")) for name in evidence.comparison.classes]
        axes.set_xticks(range(classes), names, rotation=90, fontsize=size)
        axes.set_yticks(range(classes), names if axes is panels[0] else [], fontsize=size)
        axes.tick_params(length=0)
        axes.set_title(plain(model), fontsize=9, color=INK)
        axes.set_xlabel("taken for", fontsize=8, color=FAINT)
    panels[0].set_ylabel("true class", fontsize=8, color=FAINT)
    return figure


def _reach(row: Row) -> tuple[float, float]:
    """How far the interval of a row goes down and up from its accuracy, in per cent."""
    low, high = (row.interval.low, row.interval.high) if row.interval else (row.accuracy, row.accuracy)
    return 100 * (row.accuracy - low), 100 * (high - row.accuracy)


def _beaten(x: float, y: float, costs: Iterable[float], heights: Iterable[float]) -> bool:
    return any((a <= x and b >= y) and (a, b) != (x, y) for a, b in zip(costs, heights, strict=True))


def _with_legend(figure: Figure, evidence: Evidence, models: Sequence[str]) -> Figure:
    return with_legend(figure, {model: style(evidence, model) for model in models})
