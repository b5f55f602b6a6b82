"""Sections of the report that only comparisons of classifiers have."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from pointset.comparison.charts import learning_curves, style
from pointset.comparison.tables import Table
from pointset.comparison.task import Results, Section
from pointset.evaluation import calibration
from pointset.evaluation.predictions import load_predictions
from pointset.evaluation.robustness import robustness_of, robustness_table
from pointset.viz.charts import label_axes, make_panels, plain_label, shorten
from pointset.viz.color import FAINT, INK
from pointset.viz.confusion import draw_confusions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CALIBRATION = ("loss", "brier", "calibration_error", "calibration_error_equal_mass")
"""Metrics of the calibration table."""
MOST_SHOWN = 8
"""Maximum number of models that are shown individually. The best models are shown."""
SEVERAL_SEEDS = "Lines are means over seeds; with few models, bands show the range from the lowest to the highest seed."
ROBUSTNESS_TEXT = (
    "Test sets are corrupted as in ModelNet40-C (arXiv 2201.12296), without corruptions that need a renderer, and by "
    "random and nearest-patch dropout (arXiv 2202.03377), each at five severities. mCE is the mean corruption error "
    "(arXiv 1903.12261) in per cent of that of the first row; a value below 100 is better than the first row. Accuracy "
    "at N is the accuracy on random subsets of N points of each test set. robustness.csv has all errors."
)
CALIBRATION_TEXT = (
    "The table has means over seeds. ECE is the expected calibration error over 15 bins of confidence, of equal width "
    "or of equal mass. The diagrams show the first seed of the best models, at most eight, in bins of equal mass. The "
    "area of a dot shows the bin's share of the predictions. On the diagonal, a model is calibrated; above it, it is "
    "underconfident."
)
CONFUSION_TEXT = (
    "The matrices show the first seed of the two most accurate models. Rows are the true classes with their numbers of "
    "shapes, and columns the predicted classes. A cell has the percentage of its true class, if it is at least 1 %. "
    "Blue is correct, orange is wrong, and the shade shows the square root of the percentage."
)
CLASSES_TEXT = "Means over seeds of the best models, at most eight; all runs are in classes.csv."


def sections(results: Results) -> Iterator[Section]:
    """Yield the sections that follow the sections common to all comparisons."""
    columns = {"accuracy": "training accuracy %", "validation_accuracy": "validation accuracy %"}
    chart = learning_curves(results, columns, lambda epoch: epoch, "epoch", shares=True)
    several = any(row.seeds > 1 for row in results.rows.values())
    yield Section("Learning curves", SEVERAL_SEEDS if several else "One seed.", chart, "learning-curves")
    robust = robustness_table({label: robustness_of(results.folders[label]) for label in results})
    yield Section("Corrupted and smaller test sets", ROBUSTNESS_TEXT, table=robust)
    yield Section(
        "Calibration", CALIBRATION_TEXT, reliability_section(results), "reliability", calibration_table(results)
    )
    best = {label: load_predictions(results.first(label)) for label in results.best(2)}
    counts, classes = {label: run.confusion for label, run in best.items()}, next(iter(best.values())).classes
    yield Section("Confusion matrices", CONFUSION_TEXT, draw_confusions(counts, classes), "confusion")
    yield Section("Accuracy of every class", CLASSES_TEXT, table=class_table(results))


def calibration_table(results: Results) -> Table:
    """Return log loss, Brier score and calibration errors of each model, as means over seeds."""
    shown = [metric for metric in results.metrics if metric.name in CALIBRATION]
    return [
        {"model": label} | {metric.title: metric.write(row.metrics[metric.name].mean) for metric in shown}
        for label, row in results.rows.items()
    ]


def class_table(results: Results) -> Table:
    """Return for each class the number of test shapes, and the best models' accuracies as means over seeds."""
    shown = results.best(MOST_SHOWN)
    runs = {label: [load_predictions(folder) for folder in results.folders[label].values()] for label in shown}
    first = next(iter(runs.values()))[0]
    counts = np.bincount(first.labels, minlength=len(first.classes))
    return [
        {
            "class": name,
            "shapes": int(count),
            **{
                f"{label} %": f"{100 * fmean(run.per_class[name] for run in seeds):.1f}"
                for label, seeds in runs.items()
            },
        }
        for name, count in zip(first.classes, counts, strict=True)
        if count
    ]


def reliability_section(results: Results) -> Figure | None:
    """Draw accuracy against confidence, with one panel for the first seed of each of the best models."""
    shown = results.best(MOST_SHOWN)
    figure, panels = make_panels(len(shown), 4, 1.75, sharey=True)
    for axes, label in zip(panels, shown, strict=True):
        run, color = load_predictions(results.first(label)), style(results, label)["color"]
        curve = calibration.reliability(run.logits, run.labels, "mass")
        axes.plot([0, 1], [0, 1], color="#bbbbbb", lw=0.8)
        axes.plot(curve.confidence, curve.accuracy, color=color, lw=0.8)
        axes.scatter(curve.confidence, curve.accuracy, 4 + 120 * curve.share, color=color, lw=0, clip_on=False)
        title = f"{textwrap.fill(plain_label(shorten(label, 5.0, 7.5)), 25)}\nECE {100 * curve.error:.1f} %"
        axes.set_title(title, fontsize=7.5, color=INK, pad=3)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        label_axes(axes, "", "")
    figure.supxlabel("confidence", fontsize=8, color=FAINT)
    figure.supylabel("accuracy", fontsize=8, color=FAINT)
    return figure
