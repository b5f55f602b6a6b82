"""Judge predictions of any classifiers: which models differ, for new seeds and new items?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from pointset.comparison.predictions import pivot, read_tables, tidy, without_seed
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, check_level
from pointset.comparison.verdict import Verdict, combine, give_verdict
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
            and seed, or with one column of probabilities for each class in place of prediction; or files of such
            tables, a folder of runs, or the folder of a comparison; see `pointset.comparison.predictions`. A column
            `data` names data sets: there is a verdict for each, and one over all.
        columns: names of columns that are named otherwise, such as {"item": "uid", "label": "truth"}.
        level: probability of any error in a table of equally good models.
        deterministic: models whose training has no seed, such as a support vector machine; an empty cell in the column
            seed says the same.

    Returns:
        The verdict; printed, it is the text of `pointset judge`.

    Raises:
        PointsetError: a file or a column is missing, an item is missing or stands twice for a run, labels of an item
            differ, probabilities do not sum to one, or the level is not in (0, 1); the message names item and run.

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
    fixed = {*deterministic, *without_seed(table)}
    tables = {str(data): pivot(rows) for data, rows in table.groupby("data", sort=False)}
    parts = {
        data: give_verdict({model: _runs(own) for model, own in right.items()}, labels, level=level, fixed=fixed)
        for data, (labels, right) in tables.items()
    }
    if len(parts) == 1:
        return next(iter(parts.values()))
    return combine(parts, _in_all([right for _, right in tables.values()], [*tables]))


def _runs(by_seed: Mapping[int, ndarray]) -> Bool[ndarray, "seeds items"]:
    return np.stack([*by_seed.values()])


def _in_all(
    tables: Sequence[Mapping[str, Mapping[int, ndarray]]], names: Sequence[str]
) -> dict[str, dict[str, ndarray]]:
    """The scores of each data set and model, of the seeds that a model has in all data sets."""
    scores: dict[str, dict[str, ndarray]] = {name: {} for name in names}
    for model in tables[0]:
        if not all(model in table for table in tables):
            continue
        seeds = [seed for seed in tables[0][model] if all(seed in table[model] for table in tables)]
        if not seeds:
            raise PointsetError(
                f"model {model} has no seed that is in all data sets: give it the same seeds everywhere"
            )
        for name, table in zip(names, tables, strict=True):
            scores[name][model] = np.stack([table[model][seed] for seed in seeds])
    return scores
