"""Judge predictions of any classifiers, from tables and files of this or another package: statistics, as a verdict.

A table has one row for each item, model and seed, with the columns item, label, prediction, model and seed. In place of
`prediction`, there may be one column of probabilities for each class. Columns of other names are found by
`COLUMN_ALIASES`, or named by the caller. Without a column `model`, the name of the file is the model, and "-seed3" at
its end the seed; without a column `seed`, all rows are of one run.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from pointset.comparison.crossed import Spread, compare_crossed, crossed_interval, estimate_difference
from pointset.comparison.statistics import Estimate, Interval, holm
from pointset.comparison.verdict import ClassDifference, ModelRow, Verdict
from pointset.errors import PointsetError, quoted
from pointset.runs.files import require_file
from pointset.runs.spreadsheets import from_text

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMN_ALIASES = {
    "item": ("item", "name", "id"),
    "label": ("label", "true_class", "target", "y_true"),
    "prediction": ("prediction", "predicted", "class_1", "y_pred"),
    "model": ("model",),
    "seed": ("seed",),
}
"""Names under which columns are found, in this order."""
PROBABILITY_PREFIX = re.compile("^(probability_|prob_|p_)")
"""A column of probabilities is named like its class, with or without one of these in front."""
OWN = re.compile(r"class_\d+|probability_\d+|entropy|points|unlike.*")
"""Columns of `pointset classify -o` that are not probabilities of a class."""
SUM_ERROR = 1e-3
"""Probabilities of an item sum to 1 within this, since files often have few digits."""
JUDGED_SUFFIXES = (".csv", ".parquet", ".npz", ".json")
IN_NAME = re.compile(r"[-_.]seed(\d+)$")


def judge(
    predictions: "DataFrame | Mapping[str, Any] | str | Path | Sequence[str | Path]",
    columns: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge predictions of any classifiers on the same items: which models differ, for new seeds and new items?

    Args:
        predictions: a table with one row for each item, model and seed, with the columns item, label, prediction, model
            and seed, or with one column of probabilities for each class in place of prediction; or files of such
            tables, see `pointset.comparison.judge`.
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
        labels, right = pivot(read_tables([Path(path) for path in predictions], columns))
    else:
        labels, right = pivot(tidy(predictions, columns))
    rows = sorted((_row(model, scores) for model, scores in right.items()), key=lambda row: -row.accuracy)
    ordered = {row.model: right[row.model] for row in rows}
    pairs, classes = compare_crossed(ordered), _class_differences(ordered, labels)
    return Verdict(tuple(rows), tuple(pairs), tuple(classes), len(labels))


def _row(model: str, scores: Any) -> ModelRow:
    runs = [float(mean) for mean in scores.mean(axis=1)]
    if len(runs) < 2:
        return ModelRow(model, 1, runs[0], None, None)
    spread = Spread.of(scores)
    interval = crossed_interval((spread,), spread.item_means).interval
    inside = Interval(max(0.0, interval.low), min(1.0, interval.high))
    return ModelRow(model, len(runs), fmean(runs), stdev(runs), inside)


def _class_differences(right: Mapping[str, Any], labels: Any) -> list[ClassDifference]:
    """The best model against each other model with several runs, in each class with at least two items."""
    several = [model for model, scores in right.items() if len(scores) > 1]
    if not several:
        return []
    best, *others = several
    rows: list[tuple[str, str, int, Estimate]] = []
    for label in np.unique(labels):
        inside = labels == label
        if inside.sum() < 2:
            continue
        spreads = {model: Spread.of(right[model][:, inside]) for model in several}
        for other in others:
            rows.append((str(label), other, int(inside.sum()), estimate_difference(spreads[best], spreads[other])))
    corrected = holm([row[3].p_value for row in rows])
    differences = [ClassDifference(*row[:3], row[3].value, p) for row, p in zip(rows, corrected, strict=True)]
    return sorted(differences, key=lambda row: (row.p_holm, -abs(row.difference)))


def read_tables(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> "DataFrame":
    """Read files of predictions into one table with the columns of `COLUMN_ALIASES`; see `tidy`.

    They are CSV, parquet, npz or JSON files (of `pointset classify` and `evaluate`).
    """
    import pandas

    if not paths:
        raise PointsetError("no files of predictions were given: name at least one CSV, parquet, npz or JSON file")
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise PointsetError(f"{twice} is given twice: leave one out")
    tables = [tidy(_read(path), columns, str(path), *_named(path)) for path in paths]
    return pandas.concat(tables, ignore_index=True)


def _named(path: Path) -> tuple[str, int]:
    """The model and the seed that a path names; the predictions.npz of a run are named by its folder."""
    name = path.parent.name if path.name == "predictions.npz" and path.parent.name else path.stem
    match = IN_NAME.search(name)
    if match is None or match.start() == 0:
        return name, 0
    return name[: match.start()], int(match[1])


def _read(path: Path) -> "DataFrame":
    import pandas

    readers = {".csv": _read_csv, ".parquet": pandas.read_parquet, ".npz": _read_npz, ".json": _read_json}
    if (suffix := path.suffix.lower()) not in JUDGED_SUFFIXES:
        raise PointsetError(f"{path} is not a file of predictions: its name must end in {', '.join(JUDGED_SUFFIXES)}")
    try:
        require_file(path)
        return readers[suffix](path)
    except FileNotFoundError as error:
        raise PointsetError(f"{path} does not exist: name a file of predictions") from error
    except (PointsetError, OSError):
        raise
    except ImportError as error:
        raise PointsetError(f"reading {path} needs pyarrow: pip install pyarrow") from error
    except Exception as error:  # parsers of other libraries raise errors of many kinds
        raise PointsetError(f"{path} cannot be read as {suffix[1:]}: {error}") from error


def _read_csv(path: Path) -> "DataFrame":
    import pandas

    # pandas would take classes such as None and NA for gaps.
    table = pandas.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"]).rename(columns=from_text)
    words = table.select_dtypes(exclude="number").columns
    return table.assign(**{name: table[name].map(from_text) for name in words})


def _read_npz(path: Path) -> "DataFrame":
    """Arrays with one entry for each row; predictions may be given as `logits` or `probabilities` [rows, classes]."""
    import pandas

    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file}
    scores = arrays.pop("logits", arrays.pop("probabilities", None))
    classes = arrays.pop("classes", None)
    renamed = {"names": "item", "labels": "label", "predictions": "prediction", "items": "item"}
    table = {renamed.get(name, name): array for name, array in arrays.items() if array.ndim < 2}
    if scores is not None:
        table["prediction"] = scores.argmax(axis=1)
    if classes is not None and len(classes):
        table |= {key: classes[table[key]] for key in ("label", "prediction") if table[key].dtype.kind in "iu"}
    return pandas.DataFrame(table)


def _read_json(path: Path) -> "DataFrame":
    import pandas

    rows = json.loads(path.read_text(encoding="utf-8"))["predictions"]
    best = [{"item": row["name"], "label": row["true_class"], "prediction": row["classes"][0]["class"]} for row in rows]
    return pandas.DataFrame(best)


def tidy(
    table: "DataFrame | Mapping[str, Any]",
    columns: Mapping[str, str] | None = None,
    what: str = "the table",
    model: str = "model",
    seed: int = 0,
) -> "DataFrame":
    """The columns item, label, prediction, model and seed of a table of predictions, which messages call `what`.

    `model` and `seed` are those of all rows if no column has them. A PointsetError is raised if a column is missing or
    has gaps, the table is empty, or probabilities do not sum to one.
    """
    import pandas

    table = pandas.DataFrame(table)
    names = _columns_of(table, dict(columns or {}), what)
    if not len(table):
        raise PointsetError(f"{what} has no rows: give at least one prediction")
    tidied = pandas.DataFrame({key: table[name] for key, name in names.items()})
    if "prediction" not in names:
        tidied["prediction"] = _most_likely(table, [*names.values()], tidied["label"], what)
    for key, value in (("model", model), ("seed", seed)):
        if key not in tidied:
            tidied[key] = value
    for key in COLUMN_ALIASES:
        if (gaps := tidied[key].isna()).any():
            raise PointsetError(f"row {gaps.argmax() + 1} of {what} has no {key}: fill it in, or leave the row out")
    numbers = all(pandas.api.types.is_numeric_dtype(tidied[key]) for key in ("label", "prediction"))
    words = ("item", "model") if numbers else ("item", "model", "label", "prediction")
    return tidied.astype(dict.fromkeys(words, str))


def _columns_of(table: "DataFrame", columns: dict[str, str], what: str) -> dict[str, str]:
    """The column of each meaning; those that a table may lack are left out."""
    for key, name in columns.items():
        if key not in COLUMN_ALIASES:
            raise PointsetError(f"{quoted(key)} is not a column of predictions: use {', '.join(COLUMN_ALIASES)}")
        if name not in table:
            raise PointsetError(f"{what} has no column {quoted(name)}: it has {_listed(table)}")
    given = {key: next((name for name in names if name in table), None) for key, names in COLUMN_ALIASES.items()}
    names = {key: name for key, name in (given | columns).items() if name is not None}
    for key in ("item", "label"):
        if key not in names:
            raise PointsetError(
                f"{what} has no column {' or '.join(COLUMN_ALIASES[key])}: name it with {key}=COLUMN; "
                f"it has {_listed(table)}"
            )
    return names


def _listed(table: "DataFrame") -> str:
    names = [str(name) for name in table.columns]
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _most_likely(table: "DataFrame", taken: Sequence[str], labels: Any, what: str) -> ndarray:
    """The class with the largest probability in each row."""
    rest = [name for name in table if name not in taken and not OWN.fullmatch(str(name))]
    wide = [name for name in rest if table[name].dtype.kind in "fiu"]
    if len(wide) < 2:
        raise PointsetError(
            f"{what} has no column {' or '.join(COLUMN_ALIASES['prediction'])}, and no columns of probabilities: "
            f"name it with prediction=COLUMN; it has {_listed(table)}"
        )
    classes = [PROBABILITY_PREFIX.sub("", str(name)) for name in wide]
    if strange := sorted(set(map(str, labels.unique())) - set(classes)):
        raise PointsetError(f"{what} has no column of probabilities for the class {quoted(strange[0])}")
    values = table[wide].to_numpy(np.float64)
    sums = values.sum(axis=1)
    wrong = ~(np.abs(sums - 1) <= SUM_ERROR) | (values < 0).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise PointsetError(
            f"the probabilities in row {row + 1} of {what} sum to {sums[row]:.4g} and must be at least 0 and sum to 1: "
            "apply softmax to logits"
        )
    return np.array(classes)[values.argmax(axis=1)]


def pivot(table: "DataFrame") -> tuple[ndarray, dict[str, Bool[ndarray, "seeds items"]]]:
    """The label of each item of a table of `tidy`, and by model which items its runs predict rightly."""
    run, keys = ["model", "seed"], ["model", "seed", "item"]
    if (again := table.duplicated(keys)).any():
        first = table[again].iloc[0]
        count = (table[keys] == first[keys]).all(axis=1).sum()
        name = f"model {first['model']}, seed {first['seed']}"
        raise PointsetError(f"item {quoted(first['item'])} stands {count} times for {name}: keep one")
    right = table.assign(right=table["label"] == table["prediction"]).pivot(index=run, columns="item", values="right")
    for (model, seed), gaps in right.isna().iterrows():
        if gaps.any():
            raise PointsetError(
                f"model {model}, seed {seed} lacks {gaps.sum():,} of {len(gaps):,} items, such as "
                f"{quoted(gaps.idxmax())}: all runs must have the same items"
            )
    labels = table.drop_duplicates("item").set_index("item")["label"]
    if (differ := table["label"] != table["item"].map(labels)).any():
        row = table[differ].iloc[0]
        raise PointsetError(
            f"item {quoted(row['item'])} has the label {quoted(labels[row['item']])} and, for model {row['model']}, "
            f"seed {row['seed']}, {quoted(row['label'])}: an item must have one label"
        )
    by_model = {str(model): right.loc[model].to_numpy(bool) for model in table["model"].unique()}
    return labels[right.columns].to_numpy(), by_model
