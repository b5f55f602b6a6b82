"""Judge predictions of any classifiers: which models differ, for new seeds and new items?"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped
from numpy import ndarray

from pointset.comparison.metric import Metric
from pointset.comparison.pairs import compare_models
from pointset.comparison.prediction_tables import pivot, read_tables, tidy
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, check_level, estimate_mean, measure_spreads
from pointset.comparison.verdict import ACCURACY, ModelRow, Verdict
from pointset.errors import PointsetError, quoted

if TYPE_CHECKING:
    from pandas import DataFrame


def judge(
    predictions: "DataFrame | Mapping[str, Any] | str | Path | Sequence[str | Path]",
    columns: Mapping[str, str] | None = None,
    *,
    level: float = SIGNIFICANCE_LEVEL,
    deterministic: Sequence[str] = (),
) -> Verdict:
    """Judge predictions of any classifiers on the same items: which models differ, for new seeds and new items?

    Args:
        predictions: a table with one row for each item, model and seed, with the columns item, label, prediction, model
            and seed; or files of such tables, a folder of runs, or the folder of a comparison; see
            `pointset.comparison.prediction_tables`. A column `data` names data sets: there is a verdict for each, and
            one over all.
        columns: names of columns that are named otherwise, such as {"item": "uid", "label": "truth"}.
        level: probability of any error in a table of equally good models.
        deterministic: models whose training has no seed, such as a support vector machine.

    Returns:
        The verdict; printed, it is the text of `pointset judge`.

    Raises:
        PointsetError: a file or a column is missing, an item is missing or stands twice for a run, labels of an item
            differ, or the level is not in (0, 1); the message names item and run.

    Example:
        >>> table = {"item": [0, 1, 0, 1], "label": [3, 5, 3, 5], "prediction": [3, 5, 3, 3],
        ...          "model": ["svm", "svm", "tree", "tree"], "seed": [0, 0, 0, 0]}
        >>> pointset.judge(table).summary()
        'On 2 items, svm has the best accuracy, 100.0 %; with one seed this may be chance.'
    """
    check_level(level)
    if isinstance(predictions, str | Path):
        predictions = [predictions]
    if isinstance(predictions, Sequence):
        table = read_tables([Path(path) for path in predictions], columns)
    else:
        table = tidy(predictions, columns)
    models = list(table["model"].unique())
    for model in deterministic:
        if model not in models:
            raise PointsetError(
                f"deterministic names {quoted(model)}, which is not a model: there are {', '.join(models)}"
            )
    fixed = {*deterministic}
    tables = {str(data): pivot(rows) for data, rows in table.groupby("data", sort=False)}
    parts = {}
    for data, right in tables.items():
        scores = {model: np.stack([*own.values()]) for model, own in right.items()}
        parts[data] = replace(give_verdict(scores, level=level, fixed=fixed), of_tables=True)
    if len(parts) == 1:
        return next(iter(parts.values()))
    return combine(parts, tables)


def give_verdict(
    scores: Mapping[str, ndarray],
    *,
    level: float = SIGNIFICANCE_LEVEL,
    fixed: Collection[str] = (),
    metric: Metric = ACCURACY,
    step: float = 0.0,
) -> Verdict:
    """The verdict on the scores [seeds, items] of some models; see `compare_models`."""
    spreads = measure_spreads(scores, fixed, step)
    rows = []
    for model, spread in spreads.items():
        runs = [float(mean) for mean in scores[model].mean(axis=1)]
        deviation = stdev(runs) if len(runs) > 1 and not spread.fixed else None
        interval = metric.inside(estimate_mean(spread).interval(level)) if spread.known else None
        rows.append(ModelRow(model, len(runs), spread.fixed, fmean(runs), deviation, interval))
    rows.sort(key=lambda row: -metric.merit(row.mean))
    ordered = {row.model: scores[row.model] for row in rows}
    items = next(iter(scores.values())).shape[1]
    pairs = compare_models(ordered, level, fixed, step)
    return Verdict(tuple(rows), tuple(pairs), items, level, metric)


def combine(parts: Mapping[str, Verdict], tables: Mapping[str, Mapping[str, Mapping[int, ndarray]]]) -> Verdict:
    """The verdict on the means over several data sets, for new seeds and items of these data sets.

    Every data set counts the same. `tables` have the answers by data set, model and seed; models and seeds that a data
    set lacks are left out.

    Raises:
        PointsetError: no model, or no seed of a model, is in all data sets.
    """
    part, first = next(iter(parts.values())), next(iter(tables.values()))
    scores = {}
    for model in first:
        if not all(model in table for table in tables.values()):
            continue
        seeds = [seed for seed in first[model] if all(seed in table[model] for table in tables.values())]
        if not seeds:
            raise PointsetError(
                f"model {model} has no seed that is in all data sets: give it the same seeds everywhere"
            )
        scores[model] = stack([np.stack([table[model][seed] for seed in seeds]) for table in tables.values()])
    if not scores:
        few, many = (f"{name} has {', '.join(row.model for row in part.rows)}" for name, part in [*parts.items()][:2])
        raise PointsetError(f"no model is in all data sets: {few}, {many}")
    fixed = [model for model in scores if all(part.row(model).fixed for part in parts.values())]
    step = 1 / (len(parts) * min(part.items for part in parts.values()))
    verdict = give_verdict(scores, level=part.level, fixed=fixed, metric=part.metric, step=step)
    return replace(verdict, parts=parts, of_tables=part.of_tables)


def stack(scores: Sequence[Shaped[ndarray, "seeds _"]]) -> Float[ndarray, "seeds items"]:
    """Scores of several data sets as one, such that each run's mean is the mean of its means on the data sets.

    Items vary about the mean of their data set, and count such that all data sets weigh the same: the variance over
    items of the mean is then that of a mean of independent means.
    """
    items = sum(own.shape[1] for own in scores)
    middle = fmean(float(own.mean()) for own in scores)
    scaled = [(own - own.mean()) * (items / (len(scores) * own.shape[1])) + middle for own in scores]
    return np.concatenate(scaled, axis=1)
