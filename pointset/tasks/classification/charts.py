"""Charts of classifiers: each function takes results and returns a matplotlib figure, or None without data."""

from __future__ import annotations

import textwrap
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from pointset.comparison.report.charts import draw_chance, learning_curves, legend, style
from pointset.comparison.results import Results
from pointset.evaluation import calibration
from pointset.tasks.classification.predictions import predictions_of, robustness_of, sizes_of
from pointset.viz.charts import label_axes, make_panels, plain
from pointset.viz.color import FAINT, INK
from pointset.viz.confusion import draw_confusions, stand_together

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8
"""Maximum number of models that are shown individually; if there are more, the best are shown."""


def curves(results: Results) -> Figure | None:
    """Training accuracy by epoch, and validation accuracy if there is a validation split."""
    columns = {"accuracy": "training accuracy %", "validation_accuracy": "validation accuracy %"}
    return learning_curves(results, columns, lambda epoch: epoch, "epoch", scale=100, level=True)


def accuracy_by_size(results: Results) -> Figure | None:
    """Accuracy against the size of the test sets, up to the size of the training sets."""
    curves = {label: by_size(results, label) for label in results}
    if not any(curves.values()):
        return None
    figure, (axes,) = make_panels(1, 1, 3.0)
    for label, curve in curves.items():
        axes.plot(list(curve), [100 * value for value in curve.values()], lw=1.2, **style(results, label))
    axes.set_xscale("log", base=2)
    sizes = sorted({size for curve in curves.values() for size in curve})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    draw_chance(axes, results)
    label_axes(axes, f"points of a test set (trained at {results.points:,})", "accuracy %")
    return legend(figure, results, results)


def by_size(results: Results, label: str) -> dict[int, float]:
    """Accuracy by size of the test sets, mean over the seeds tested on smaller sets; empty if there are none."""
    curves = sizes_of(results.folders[label])
    return {size: fmean(curve[size] for curve in curves) for size in curves[0]} if curves else {}


def robustness(results: Results) -> Figure | None:
    """Error by severity, one panel for each corruption; severity 0 is the clean test set."""
    errors = {label: by_name for label in results if (by_name := corruption_errors(results, label))}
    if not errors:
        return None
    names = list(next(iter(errors.values())))
    figure, panels = make_panels(len(names), 5, 1.3, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        for label, by_name in errors.items():
            curve = [100 * error for error in by_name[name]]
            axes.plot(range(len(curve)), curve, color=style(results, label)["color"], lw=1.1)
        axes.set_title(name.replace("_", " "), fontsize=8, color=INK, pad=3)
        axes.set_xticks(range(6))
        label_axes(axes, "", "")
    panels[-1].set_xlabel("severity", fontsize=8, color=FAINT)
    figure.supylabel("error %", fontsize=8, color=FAINT)
    return legend(figure, results, results)


def corruption_errors(results: Results, label: str) -> dict[str, list[float]]:
    """For each corruption, errors by severity (0 is clean), mean over the tested seeds; empty if there are none."""
    runs = list(robustness_of(results.folders[label]).values())
    if not runs:
        return {}
    values = [[[run.clean_error, *errors.values()] for errors in run.errors.values()] for run in runs]
    return dict(zip(runs[0].errors, np.mean(values, axis=0).tolist(), strict=True))


def reliability(results: Results) -> Figure | None:
    """Accuracy against confidence, one panel for each of the best models (first seed); dot area shows the share."""
    best = set(results.best(MOST))
    shown = [label for label in results if label in best]
    figure, panels = make_panels(len(shown), 4, 1.75, sharey=True)
    for axes, label in zip(panels, shown, strict=True):
        run, color = predictions_of(results.first(label)), style(results, label)["color"]
        curve = calibration.reliability(run.logits, run.labels, "mass")
        axes.plot([0, 1], [0, 1], color="#bbbbbb", lw=0.8)
        axes.plot(curve.confidence, curve.accuracy, color=color, lw=0.8)
        axes.scatter(curve.confidence, curve.accuracy, 4 + 120 * curve.share, color=color, lw=0, clip_on=False)
        title = f"{textwrap.fill(plain(label), 25)}\nECE {100 * curve.error:.1f} %"
        axes.set_title(title, fontsize=7.5, color=INK, pad=3)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        label_axes(axes, "", "")
    figure.supxlabel("confidence", fontsize=8, color=FAINT)
    figure.supylabel("share that is right", fontsize=8, color=FAINT)
    return figure


def confusions(results: Results) -> list[Figure]:
    """Confusion matrices of the two most accurate models (first seed), in one figure, or in two if they are large."""
    runs = {label: predictions_of(results.first(label)) for label in results.best(2)}
    classes = next(iter(runs.values())).classes
    counts = {label: run.confusion for label, run in runs.items()}
    groups = [counts] if stand_together(classes) else [{label: matrix} for label, matrix in counts.items()]
    return [draw_confusions(group, classes) for group in groups]
