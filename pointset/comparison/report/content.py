"""What a report says, section by section, before it is laid out as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.comparison.comparing import Comparison
from pointset.comparison.report import figures
from pointset.comparison.report.evidence import Evidence
from pointset.comparison.statistics import Pair
from pointset.comparison.tables import NOT_DISTINGUISHABLE, interval, make_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = list[dict[str, Any]]


@dataclass
class Section:
    """A heading, a few sentences, and a figure or a table under them."""

    title: str
    text: str
    figure: Figure | None = None
    name: str = ""
    """Of the figure's file."""
    tables: dict[str, Table] = field(default_factory=dict)
    """By caption."""


def sections(comparison: Comparison) -> Iterator[Section]:
    """All sections for which there is something to show."""
    evidences = [Evidence(comparison, points) for points in comparison.experiment.points]
    evidences = [evidence for evidence in evidences if len(evidence)]
    if drawn := figures.trained_sizes(evidences):
        yield Section(
            "Accuracy against the size of a set", "Bars: 95 % intervals over seeds.", drawn, "accuracy-by-trained-size"
        )
    for evidence in evidences:
        several = len(comparison.experiment.points) > 1
        yield from _of_one_size(evidence, f", {evidence.points:,} points" if several else "")


def _of_one_size(evidence: Evidence, suffix: str) -> Iterator[Section]:
    if pairs := evidence.comparison.pairs.get(evidence.points):
        yield Section(f"Which models can be told apart{suffix}", PAIRS_TEXT, tables={"": pair_table(pairs)})
    drawn: Sequence[tuple[str, str, Callable[[Evidence], Figure | None], str]] = (
        ("Accuracy against cost", "pareto", figures.pareto, PARETO_TEXT),
        ("Learning curves", "learning-curves", figures.learning_curves, "Mean over seeds."),
        ("Fewer points at test time", "smaller-sets", figures.accuracy_by_size, SIZE_TEXT),
        ("Corrupted test sets", "robustness", figures.robustness, ROBUSTNESS_TEXT),
        ("Calibration", "reliability", figures.reliability, CALIBRATION_TEXT),
        ("What is taken for what", "confusion", figures.confusions, CONFUSION_TEXT),
    )
    tables = {"robustness": robustness_table, "reliability": calibration_table, "confusion": class_table}
    for title, name, draw, text in drawn:
        if (figure := draw(evidence)) is not None:
            table = {"": tables[name](evidence)} if name in tables else {}
            yield Section(title + suffix, text, figure, f"{name}-n{evidence.points}", table)


PAIRS_TEXT = (
    "Differences of accuracy in points of per cent. Over seeds: 95 % interval by Student's t, seeds being blocks and "
    "the chance of a run taken to be alike for all models. Over test shapes: 95 % interval of a paired bootstrap of "
    "the difference averaged over seeds. McNemar: exact test of the two runs of the first seed. A pair is "
    "distinguishable when the larger of the p-values over seeds and over shapes is below 0.05 after Holm's correction "
    "for the number of pairs of a size. Of a single seed McNemar's test says whether the two runs differ; another seed "
    "of the same models may differ as much."
)
PARETO_TEXT = (
    "Multiply-adds are counted, times are those of the machine below. The grey line joins the rows that no other row "
    "beats on both axes; bars are 95 % intervals over seeds."
)
SIZE_TEXT = "The same trained models on random subsets of the same test sets."
ROBUSTNESS_TEXT = (
    "The corruptions of ModelNet40-C (arXiv 2201.12296) that need no renderer, and random and nearest-patch dropout "
    "(arXiv 2202.03377), each at five severities, on the whole test set; severity 0 is the clean one. mCE is the mean "
    "corruption error (arXiv 1903.12261) relative to the first row, in per cent: below 100 is more robust than it."
)
CALIBRATION_TEXT = (
    "Mean over seeds. ECE: expected calibration error over 15 bins of confidence, of equal width or of equal mass; the "
    "diagrams show the first seed in bins of equal mass, dots as large as their share of the predictions. A model on "
    "the diagonal is calibrated, one above it is underconfident."
)
CONFUSION_TEXT = "The two most accurate models, first seed; shades are square roots of the share of the true class."


def verdicts(comparison: Comparison) -> list[str]:
    """For each size a sentence on which row is best and which rows cannot be told apart from it."""
    sentences = []
    for points in dict.fromkeys(row.points for row in comparison.rows):
        rows = [row for row in comparison.rows if row.points == points]
        best = next(row for row in rows if row.best)
        others = [row for row in rows if not row.best]
        level = [row.model for row in others if row.against_best == NOT_DISTINGUISHABLE]
        sentence = f"At {points:,} points {best.model} is the most accurate, at {_percent(best.accuracy)} %"
        apart = [row.model for row in others if row.below_best is not None and row.below_best.distinguishable]
        if any(row.below_best is not None and row.below_best.p_seeds is None for row in others):
            sentence += "; it may owe that to its only seed"
        elif others and len(apart) == len(others):
            sentence += ", and can be told apart from every other row"
        elif level:
            sentence += f"; what chance alone could have put behind it: {', '.join(level)}"
        sentences.append(sentence + ".")
    return sentences


def pair_table(pairs: Sequence[Pair]) -> Table:
    """Every pair with its intervals and p-values."""
    return [
        {
            "pair": f"{pair.first} - {pair.second}",
            "difference": f"{100 * pair.difference:+.1f}",
            "over seeds": interval(pair.over_seeds),
            "over shapes": interval(pair.over_shapes),
            "p seeds": _p(pair.p_seeds),
            "p shapes": _p(pair.p_shapes),
            "McNemar": _p(pair.p_mcnemar),
            "p Holm": _p(pair.p_holm),
            "verdict": _verdict(pair),
        }
        for pair in pairs
    ]


def _verdict(pair: Pair) -> str:
    if pair.runs_differ:
        return "the runs differ; one seed"
    return "distinguishable" if pair.distinguishable else NOT_DISTINGUISHABLE


def robustness_table(evidence: Evidence) -> Table:
    """Clean and mean error, and the mean corruption error relative to the first row that was tested so."""
    found = {model: by_seed for model in evidence if (by_seed := evidence.robustness(model))}
    baseline = next(iter(found.values()))
    table = []
    for model, by_seed in found.items():
        runs = list(by_seed.values())
        relative = [
            own.mean_corruption_error(baseline[seed])
            for seed, own in by_seed.items()
            # nothing can be divided by no error
            if seed in baseline and all(baseline[seed].corruption_errors.values())
        ]
        table.append(
            {
                "model": model,
                "clean error %": _percent(fmean(run.clean_error for run in runs)),
                "mean error %": _percent(fmean(run.mean_error for run in runs)),
                "mCE %": _percent(fmean(relative)) if relative else "",
                "seeds": len(runs),
            }
        )
    return table


def calibration_table(evidence: Evidence) -> Table:
    """Proper scores and calibration errors of every model."""
    return [
        {
            "model": row.model,
            "log loss": f"{row.loss:.3f}",
            "Brier": f"{row.brier:.3f}",
            "ECE %, equal width": _percent(row.calibration_error),
            "ECE %, equal mass": _percent(row.calibration_error_equal_mass),
        }
        for row in evidence.rows.values()
    ]


def class_table(evidence: Evidence) -> Table:
    """Accuracy of every class, mean over seeds, by model; the shapes of the class beside it."""
    comparison = evidence.comparison
    runs = {model: [comparison.evaluation(cell) for cell in evidence.cells(model)] for model in evidence}
    labels = next(iter(runs.values()))[0].labels
    counts = np.bincount(labels, minlength=len(comparison.classes))
    return [
        {
            "class": name,
            "shapes": int(count),
            **{f"{model} %": _percent(fmean(one.per_class[name] for one in found)) for model, found in runs.items()},
        }
        for name, count in zip(comparison.classes, counts, strict=True)
        if count
    ]


def main_tables(comparison: Comparison, style: str) -> tuple[str, str]:
    """What the rows reach, and what they cost, in one of tabulate's formats."""
    metrics = comparison.experiment.metrics
    figures = make_table(comparison.rows, style, part="figures", metrics=metrics)
    return figures, make_table(comparison.rows, style, part="costs", metrics=metrics)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
