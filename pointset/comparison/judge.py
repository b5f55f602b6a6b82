"""Judge predictions of any classifiers: statistics of models over seeds and items, as a verdict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from pointset.comparison.crossed import Spread, compare_crossed, estimate
from pointset.comparison.prediction_files import Predictions, pivot, read_tables, tidy
from pointset.comparison.statistics import Estimate, Interval, holm
from pointset.comparison.verdict import ClassDifference, ModelRow, Verdict

if TYPE_CHECKING:
    from pandas import DataFrame


def judge(
    predictions: "DataFrame | Mapping[str, Any] | str | Path | Sequence[str | Path]",
    columns: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge predictions of any classifiers on the same items: which models differ, for new seeds and new items?

    Args:
        predictions: a table with one row for each item, model and seed, with the columns item, label, prediction, model
            and seed, or with one column of probabilities for each class in place of prediction; or files of such
            tables, see `pointset.comparison.prediction_files`.
        columns: names of columns that are named otherwise, such as {"item": "uid", "label": "truth"}.

    Returns:
        The verdict; printed, it is the text of `pointset judge`.

    Raises:
        PointsetError: a file or a column is missing, an item is missing or stands twice for a run, labels of an item
            differ, or probabilities do not sum to one; the message names the item and the run.

    Example:
        >>> table = {"item": [0, 1, 0, 1], "label": [3, 5, 3, 5], "prediction": [3, 5, 3, 3],
        ...          "model": ["svm", "svm", "tree", "tree"], "seed": [0, 0, 0, 0]}
        >>> pointset.judge(table).summary()
        'On 2 items, svm has the best accuracy, 100.0 %; with one seed this may be chance.'
    """
    if isinstance(predictions, str | Path):
        predictions = [predictions]
    if isinstance(predictions, Sequence):
        return judge_predictions(pivot(read_tables([Path(path) for path in predictions], columns)))
    return judge_predictions(pivot(tidy(predictions, columns)))


def judge_predictions(predictions: Predictions) -> Verdict:
    """Judge predictions that are arranged by model, seed and item."""
    right = predictions.right
    rows = sorted((_row(model, scores) for model, scores in right.items()), key=lambda row: -row.accuracy)
    ordered = {row.model: right[row.model] for row in rows}
    return Verdict(
        rows=tuple(rows),
        pairs=tuple(compare_crossed(ordered)),
        classes=tuple(_class_differences(ordered, predictions.labels)),
        items=len(predictions.items),
    )


def _row(model: str, scores: Any) -> ModelRow:
    runs = [float(mean) for mean in scores.mean(axis=1)]
    if len(runs) < 2:
        return ModelRow(model, 1, runs[0], None, None)
    spread = Spread.of(scores)
    interval = estimate((spread,), spread.item_means).interval
    inside = Interval(max(0.0, interval.low), min(1.0, interval.high))
    return ModelRow(model, len(runs), fmean(runs), stdev(runs), inside)


def _class_differences(right: Mapping[str, Any], labels: Any) -> list[ClassDifference]:
    """The best model against each other model with several runs, in each class with at least two items."""
    best, *others = [model for model, scores in right.items() if len(scores) > 1] or [""]
    rows: list[tuple[str, str, int, Estimate]] = []
    for label in np.unique(labels):
        inside = labels == label
        if inside.sum() < 2:
            continue
        spreads = {model: Spread.of(right[model][:, inside]) for model in (best, *others) if others}
        for other in others:
            pair = (spreads[best], spreads[other])
            rows.append((str(label), other, int(inside.sum()), estimate(pair, pair[0].item_means - pair[1].item_means)))
    corrected = holm([row[3].p_value for row in rows])
    differences = [ClassDifference(*row[:3], row[3].value, p) for row, p in zip(rows, corrected, strict=True)]
    return sorted(differences, key=lambda row: (row.p_holm, -abs(row.difference)))
