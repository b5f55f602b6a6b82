"""The sections that the report of a comparison of classifiers adds to those of every comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from pointset.comparison.report.sections import Section, Table
from pointset.comparison.results import Results
from pointset.data.point_sets import PointSets
from pointset.tasks.classification import charts
from pointset.tasks.classification.live import live_page
from pointset.tasks.classification.mistakes import mistakes
from pointset.tasks.classification.predictions import predictions_of, robustness_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sections(results: Results, test_sets: Callable[[], PointSets]) -> dict[str, Callable[[], Iterable[Section]]]:
    """What makes each section; `test_sets` loads the test shapes, or raises if they are not available."""
    drawn: dict[str, tuple[str, Callable[[Results], Figure | None], str, Callable[[Results], Table] | None]] = {
        "Learning curves": ("learning-curves", charts.curves, _about_curves(results), None),
        "Fewer points at test time": ("smaller-sets", charts.accuracy_by_size, SIZE_TEXT, None),
        "Corrupted test sets": ("robustness", charts.robustness, ROBUSTNESS_TEXT, robustness_table),
        "Calibration": ("reliability", charts.reliability, CALIBRATION_TEXT, calibration_table),
    }
    return {
        **{title: partial(_drawn, results, title, *content) for title, content in drawn.items()},
        "Confusion matrices": partial(_confusions, results),
        "Mistakes": partial(mistakes, results, test_sets),
        "Ask the models": partial(live_page, results, test_sets),
        CLASSES: lambda: [Section(CLASSES, CLASSES_TEXT, table=class_table(results))],
    }


def _drawn(
    results: Results,
    title: str,
    name: str,
    draw: Callable[[Results], Figure | None],
    text: str,
    table: Callable[[Results], Table] | None,
) -> Iterator[Section]:
    if (chart := draw(results)) is not None:
        yield Section(title, text, chart, name, table(results) if table else [])


def _confusions(results: Results) -> Iterator[Section]:
    """One section, or one for each of two large matrices."""
    figures = charts.confusions(results)
    if len(figures) == 1:
        yield Section("Confusion matrices", CONFUSION_TEXT, figures[0], "confusion")
        return
    for place, (label, figure) in enumerate(zip(results.best(2), figures, strict=True)):
        title = f"Confusion matrix of {label}"
        yield Section(title, CONFUSION_TEXT if place == 0 else "", figure, f"confusion-{place + 1}")


def _about_curves(results: Results) -> str:
    several = any(row.seeds > 1 for row in results.rows.values())
    return f"{SEVERAL_SEEDS if several else 'One seed.'} {BASELINES_TEXT}"


SEVERAL_SEEDS = "Lines are means over seeds; with few models, bands show the range from the lowest to the highest seed."
BASELINES_TEXT = (
    "Dashed: guessing (chance), and always predicting the most frequent class of the test set (majority); omitted if "
    "they would compress the curves."
)
SIZE_TEXT = "The same trained models on random subsets of the same test sets."
ROBUSTNESS_TEXT = (
    "The corruptions of ModelNet40-C (arXiv 2201.12296) that need no renderer, and random and nearest-patch dropout "
    "(arXiv 2202.03377), each at five severities, on the whole test set; severity 0 is the clean one. mCE is the mean "
    "corruption error (arXiv 1903.12261) relative to the first row, in per cent: below 100 is more robust than it."
)
CALIBRATION_TEXT = (
    "Mean over seeds. ECE: expected calibration error over 15 bins of confidence, of equal width or of equal mass; the "
    "diagrams show the first seed of up to eight of the best models in bins of equal mass; the area of a dot is its "
    "share of the predictions. A model on the diagonal is calibrated, one above it is underconfident."
)
CONFUSION_TEXT = (
    "The two most accurate models, first seed: the share of each true class in per cent, if at least 1 per cent. "
    "Shades show its square root, so that single mistakes are visible."
)
CLASSES = "Accuracy of every class"
CLASSES_TEXT = "Mean over seeds, for up to eight of the best models; all runs are in classes.csv."


def robustness_table(results: Results) -> Table:
    """Clean and mean error, and the mean corruption error relative to the first model tested on corruptions."""
    tested = {label: by_seed for label in results if (by_seed := robustness_of(results.folders[label]))}
    baseline = next(iter(tested.values()))
    table = []
    for label, by_seed in tested.items():
        runs = list(by_seed.values())
        relative = [
            own.mean_corruption_error(baseline[seed])
            for seed, own in by_seed.items()
            # the relative error is not defined if an error of the baseline is 0
            if seed in baseline and all(baseline[seed].corruption_errors.values())
        ]
        table.append(
            {
                "model": label,
                "clean error %": _percent(fmean(run.clean_error for run in runs)),
                "mean error %": _percent(fmean(run.mean_error for run in runs)),
                "mCE %": _percent(fmean(relative)) if relative else "",
                "seeds": len(runs),
            }
        )
    return table


def calibration_table(results: Results) -> Table:
    """Proper scores and calibration errors of each model."""
    columns = {
        "log loss": ("loss", "{:.3f}", 1),
        "Brier": ("brier", "{:.3f}", 1),
        "ECE %, equal width": ("calibration_error", "{:.1f}", 100),
        "ECE %, equal mass": ("calibration_error_equal_mass", "{:.1f}", 100),
    }
    return [
        {
            "model": label,
            **{
                title: form.format(scale * row.metrics[name].mean)
                for title, (name, form, scale) in columns.items()
                if name in row.metrics  # runs of an earlier version may lack it
            },
        }
        for label, row in results.rows.items()
    ]


def class_table(results: Results) -> Table:
    """For each class, its number of test shapes and the accuracy of the best models, mean over seeds."""
    best = set(results.best(charts.MOST))
    runs = {
        label: [predictions_of(folder) for folder in results.folders[label].values()]
        for label in results
        if label in best
    }
    first = next(iter(runs.values()))[0]
    counts = np.bincount(first.labels, minlength=len(first.classes))
    return [
        {
            "class": name,
            "shapes": int(count),
            **{f"{label} %": _percent(fmean(run.per_class[name] for run in seeds)) for label, seeds in runs.items()},
        }
        for name, count in zip(first.classes, counts, strict=True)
        if count
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
