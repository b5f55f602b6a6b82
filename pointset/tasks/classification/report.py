"""The sections that the report of a comparison of classifiers adds to those of every comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from pointset.comparison.evidence import Evidence
from pointset.comparison.section import Section, Table
from pointset.data.point_sets import PointSets
from pointset.tasks.classification import charts
from pointset.tasks.classification.living import living
from pointset.tasks.classification.mistakes import mistakes
from pointset.tasks.classification.predictions import predictions_of, robustness_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sections(evidence: Evidence, test_sets: Callable[[], PointSets]) -> Iterator[Section]:
    """All sections for which there is data; `test_sets` loads the test shapes, or raises if they are not available."""
    drawn: tuple[tuple[str, str, Callable[[Evidence], Figure | None], str, Callable[[Evidence], Table]], ...] = (
        ("Learning curves", "learning-curves", charts.curves, _about_curves(evidence), _none),
        ("Fewer points at test time", "smaller-sets", charts.accuracy_by_size, SIZE_TEXT, _none),
        ("Corrupted test sets", "robustness", charts.robustness, ROBUSTNESS_TEXT, robustness_table),
        ("Calibration", "reliability", charts.reliability, CALIBRATION_TEXT, calibration_table),
    )
    for title, name, draw, text, table in drawn:
        if (chart := draw(evidence)) is not None:
            yield Section(title, text, chart, name, table(evidence))
    yield from _confusions(evidence)
    yield from mistakes(evidence, test_sets)
    yield from living(evidence, test_sets)
    yield Section("Accuracy of every class", CLASSES_TEXT, table=class_table(evidence))


def _confusions(evidence: Evidence) -> Iterator[Section]:
    """One section, or one for each of two large matrices."""
    figures = charts.confusions(evidence)
    if len(figures) == 1:
        yield Section("Confusion matrices", CONFUSION_TEXT, figures[0], "confusion")
        return
    for place, (label, figure) in enumerate(zip(evidence.best(2), figures, strict=True)):
        title = f"Confusion matrix of {label}"
        yield Section(title, CONFUSION_TEXT if place == 0 else "", figure, f"confusion-{place + 1}")


def _about_curves(evidence: Evidence) -> str:
    several = any(row.seeds > 1 for row in evidence.rows.values())
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
CLASSES_TEXT = "Mean over seeds, for up to eight of the best models; all runs are in classes.csv."


def _none(evidence: Evidence) -> Table:
    return []


def robustness_table(evidence: Evidence) -> Table:
    """Clean and mean error, and the mean corruption error relative to the first model tested on corruptions."""
    found = {label: by_seed for label in evidence if (by_seed := robustness_of(evidence.folders[label]))}
    baseline = next(iter(found.values()))
    table = []
    for label, by_seed in found.items():
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


def calibration_table(evidence: Evidence) -> Table:
    """Proper scores and calibration errors of each model."""
    means = {label: {name: one.mean for name, one in row.metrics.items()} for label, row in evidence.rows.items()}
    return [
        {
            "model": label,
            "log loss": f"{mean['loss']:.3f}",
            "Brier": f"{mean['brier']:.3f}",
            "ECE %, equal width": _percent(mean["calibration_error"]),
            "ECE %, equal mass": _percent(mean["calibration_error_equal_mass"]),
        }
        for label, mean in means.items()
    ]


def class_table(evidence: Evidence) -> Table:
    """For each class, its number of test shapes and the accuracy of the best models, mean over seeds."""
    best = set(evidence.best(charts.MOST))
    runs = {
        label: [predictions_of(folder) for folder in evidence.folders[label].values()]
        for label in evidence
        if label in best
    }
    first = next(iter(runs.values()))[0]
    counts = np.bincount(first.labels, minlength=len(first.classes))
    return [
        {
            "class": name,
            "shapes": int(count),
            **{f"{label} %": _percent(fmean(one.per_class[name] for one in found)) for label, found in runs.items()},
        }
        for name, count in zip(first.classes, counts, strict=True)
        if count
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
