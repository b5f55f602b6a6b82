"""Rank models by predictions, from tables, files and folders of this or another package.

A table has one row for each item, model and seed, with the columns item, label, prediction, model and seed. It is of
one data set, which a column `data` may name. Columns of other names are found by `COLUMN_ALIASES`, or named by the
caller. Without a column `model`, the name of the file is the model, and "-seed3" at its end the seed; without a column
`seed`, all rows are of one run.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from pointset.comparison.ranking import Ranking, rank_models
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, check_level
from pointset.errors import PointsetError, counted, quoted
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
    "data": ("data", "dataset"),
}
"""Names under which columns are found, in this order."""
IN_NAME = re.compile(r"(.+)[-_.]seed(\d+)")
PREDICTIONS_CSV, PREDICTIONS_NPZ = "predictions.csv", "predictions.npz"


def rank(
    predictions: "DataFrame | Mapping[str, Any] | str | Path | Sequence[str | Path]",
    columns: Mapping[str, str] | None = None,
    *,
    level: float = SIGNIFICANCE_LEVEL,
    deterministic: Sequence[str] = (),
) -> Ranking:
    """Rank models by their predictions on the same items, and test each difference for new seeds and new items.

    Args:
        predictions: a table with one row for each item, model and seed, with the columns item, label, prediction, model
            and seed; or files of such tables, a folder of runs, or the folder of a comparison; see
            `pointset.comparison.rank`.
        columns: names of columns that are named otherwise, such as {"item": "uid", "label": "truth"}.
        level: probability of any error in a table of equally good models.
        deterministic: models whose training has no seed, such as a support vector machine; a list of names, or one.

    Returns:
        The ranking; `str` of it is the text of `pointset rank`.

    Raises:
        PointsetError: a file or a column is missing, an item is missing or stands twice for a run, labels of an item
            differ, there are several data sets, or the level is not in (0, 1); the message names item and run.

    Example:
        >>> table = {"item": [0, 1, 0, 1], "label": [3, 5, 3, 5], "prediction": [3, 5, 3, 3],
        ...          "model": ["svm", "svm", "tree", "tree"], "seed": [0, 0, 0, 0]}
        >>> pointset.rank(table).summary()
        'On 2 items, svm has the best accuracy, 100.0 %; with one seed this may be chance.'
    """
    check_level(level)
    given = [predictions] if isinstance(predictions, str | Path) else predictions
    files = isinstance(given, Sequence)
    table = read_tables([*map(Path, given)], columns) if files else tidy(given, columns)
    models = list(table["model"].unique())
    deterministic = [deterministic] if isinstance(deterministic, str) else deterministic
    for model in deterministic:
        if model not in models:
            raise PointsetError(
                f"deterministic names {quoted(model)}, which is not a model: there are {', '.join(models)}"
            )
    return replace(rank_models(right_answers(table), level=level, fixed=deterministic), of_tables=True)


def find_files(path: Path) -> list[Path]:
    """Return the files of predictions of a path: the table of a comparison, or those of all runs of a folder."""
    if not path.is_dir():
        return [path]
    for name in (PREDICTIONS_CSV, PREDICTIONS_NPZ):
        if (path / name).exists():
            return [path / name]
    files = [file for folder in (path, path / "runs") for file in sorted(folder.glob(f"*/{PREDICTIONS_NPZ}"))]
    if not files:
        raise PointsetError(
            f"{path} has neither {PREDICTIONS_CSV} nor runs with {PREDICTIONS_NPZ}: name files of predictions, or the "
            "folder of a finished comparison"
        )
    return files


def read_tables(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> "DataFrame":
    """Read files of predictions, or folders of runs, into one table with the columns of `COLUMN_ALIASES`; see `tidy`.

    They are CSV files (as of `pointset classify` and `evaluate`), or folders as of `find_files`.
    """
    import pandas

    if not paths:
        raise PointsetError("no files of predictions were given: name at least one CSV file")
    tables = [tidy(_read(file), columns, str(file), *_named(file)) for path in paths for file in find_files(path)]
    return pandas.concat(tables, ignore_index=True)


def _named(path: Path) -> tuple[str, int]:
    """Return the model and the seed that a path names; the predictions of a run are named by its folder."""
    name = path.parent.name if path.name == PREDICTIONS_NPZ and path.parent.name else path.stem
    match = IN_NAME.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, 0)


def _read(path: Path) -> "DataFrame":
    if path.suffix.lower() != ".csv" and path.name != PREDICTIONS_NPZ:
        raise PointsetError(f"{path} is not a file of predictions: give a CSV file, or the {PREDICTIONS_NPZ} of a run")
    try:
        require_file(path)
        return _read_run(path) if path.name == PREDICTIONS_NPZ else read_csv_table(path)
    except FileNotFoundError as error:
        raise PointsetError(f"{path} does not exist: name a file of predictions") from error
    except (ValueError, KeyError, BadZipFile) as error:
        raise PointsetError(f"{path} cannot be read as predictions: {error}") from error


def read_csv_table(path: Path) -> "DataFrame":
    """Return a CSV file with the text of its cells as it was before `as_csv`; only empty cells and nan are gaps."""
    import pandas

    # pandas would take classes such as None and NA for gaps.
    table = pandas.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"]).rename(columns=from_text)
    words = table.select_dtypes(exclude="number").columns
    return table.assign(**{name: table[name].map(from_text) for name in words})


def _read_run(path: Path) -> "DataFrame":
    """Return the predictions that `pointset.evaluation.predictions.save_predictions` wrote, without loading torch."""
    import pandas

    with np.load(path, allow_pickle=False) as run:
        classes, labels, predictions = run["classes"], run["labels"], run["logits"].argmax(axis=1)
        return pandas.DataFrame({"item": run["names"], "label": classes[labels], "prediction": classes[predictions]})


def tidy(
    table: "DataFrame | Mapping[str, Any]",
    columns: Mapping[str, str] | None = None,
    what: str = "the table",
    model: str = "model",
    seed: int = 0,
) -> "DataFrame":
    """Return the columns of `COLUMN_ALIASES` of a table of predictions, which messages call `what`.

    `model` and `seed` are those of all rows if no column has them. A PointsetError is raised if a column is missing or
    has gaps, or the table is empty. Rows without a label are left out, with a warning.
    """
    import pandas

    table = pandas.DataFrame(table)
    names = _columns_of(table, columns or {}, what)
    if not len(table):
        raise PointsetError(f"{what} has no rows: give at least one prediction")
    given = {key: table[name] for key, name in names.items()}
    tidied = pandas.DataFrame({"model": model, "seed": seed, "data": "", **given}, index=table.index)
    if (unknown := tidied["label"].isna()).any() and not unknown.all():
        warnings.warn(f"{what}: {counted(int(unknown.sum()), 'row')} without a label left out", stacklevel=3)
        tidied = tidied[~unknown]
    for key in COLUMN_ALIASES:
        if (gaps := tidied[key].isna()).any():
            raise PointsetError(
                f"row {int(gaps.to_numpy().argmax()) + 1} of {what} has no {key}: fill it in, or leave the row out"
            )
    seeds = pandas.to_numeric(tidied["seed"], errors="coerce")
    if (wrong := seeds % 1 != 0).any():  # also for text and infinities
        row = int(wrong.to_numpy().argmax())
        seed_there = quoted(str(tidied["seed"].iloc[row]))
        raise PointsetError(f"row {row + 1} of {what} has the seed {seed_there}: seeds must be whole numbers")
    return tidied.apply(_words).assign(seed=seeds.astype(int))


def _words(column: Any) -> Any:
    """Return names and classes as text; truth values as 0 and 1, and whole numbers without a point."""
    if column.dtype.kind == "b":
        column = column.astype(int)
    if column.dtype.kind != "f":
        return column.astype(str)
    return (column + 0.0).map(lambda value: str(value).removesuffix(".0"))  # not -0


def _columns_of(table: "DataFrame", columns: Mapping[str, str], what: str) -> dict[str, str]:
    """Return the column of each meaning; those that a table may lack are left out."""
    listed = ", ".join(map(str, table.columns))
    for key, name in columns.items():
        if key not in COLUMN_ALIASES:
            raise PointsetError(f"{quoted(key)} is not a column of predictions: use {', '.join(COLUMN_ALIASES)}")
        if name not in table:
            raise PointsetError(f"{what} has no column {quoted(name)}: it has {listed}")
    given = {key: next((name for name in names if name in table), None) for key, names in COLUMN_ALIASES.items()}
    names = {key: name for key, name in {**given, **columns}.items() if name is not None}
    for key in ("item", "label", "prediction"):
        if key not in names:
            aliases = " or ".join(COLUMN_ALIASES[key])
            raise PointsetError(f"{what} has no column {aliases}: name it with --columns {key}=COLUMN; it has {listed}")
    return names


def right_answers(table: "DataFrame") -> dict[str, Bool[ndarray, "seeds items"]]:
    """Return which items of a table of `tidy` are predicted correctly, by model, for each seed.

    A PointsetError is raised if there are several data sets, an item is missing or stands twice for a run, or its
    labels differ.
    """
    if len(data := table["data"].unique()) > 1:
        known = ", ".join(data)
        raise PointsetError(f"the predictions are of {len(data)} data sets ({known}): rank those of one at a time")
    keys = ["model", "seed", "item"]
    if (again := table.duplicated(keys)).any():
        first = table[again].iloc[0]
        count = int((table[keys] == first[keys]).all(axis=1).sum())
        raise PointsetError(f"item {quoted(first['item'])} stands {count} times for {_run(*first[keys[:2]])}: keep one")
    labels = table.drop_duplicates("item").set_index("item")["label"]
    if (differ := table["label"] != table["item"].map(labels)).any():
        row = table[differ].iloc[0]
        raise PointsetError(
            f"item {quoted(row['item'])} has the label {quoted(str(labels[row['item']]))} and, for "
            f"{_run(row['model'], row['seed'])}, {quoted(str(row['label']))}: an item must have one label"
        )
    right = (table["label"] == table["prediction"]).groupby([table[key] for key in keys]).first().unstack("item")
    there = right.notna()
    if there.shape[1] < 2:
        raise PointsetError("there is one item: a comparison needs at least 2")
    if not there.all(axis=None):
        fewest = there.sum(axis=1).idxmin()
        lacking = there.columns[~there.loc[fewest]]
        raise PointsetError(
            f"{_run(*fewest)} lacks {len(lacking):,} of {there.shape[1]:,} items, such as {quoted(lacking[0])}, which "
            f"{_run(*there[lacking[0]].idxmax())} has: all runs must have the same items, under the same names"
        )
    return {model: right.loc[[model]].to_numpy(bool) for model in table["model"].unique()}


def _run(model: str, seed: int) -> str:
    return f"model {model}, seed {int(seed)}"
