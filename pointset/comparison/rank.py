"""Rank models by their predictions, which are in tables or files of this or another package.

A table has one row for each item, model and seed, with the columns `item`, `label`, `prediction`, `model` and `seed`.
All rows are of one dataset, which an optional column `data` names. Columns have names from `COLUMN_ALIASES`, or names
that the caller gives. If there is no column `model`, the file name, without an ending such as "-seed3", is the name of
the model. If there is no column `seed`, this ending gives the seed. Without such an ending, all rows belong to one run.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtyping import Bool
from numpy import ndarray

from pointset.comparison.ranking import Ranking, rank_models
from pointset.comparison.statistics import SIGNIFICANCE_LEVEL
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
"""Accepted names of each column. If a table has several of these names, the first one is used."""
IN_NAME = re.compile(r"(.+)[-_.]seed(\d+)")
PREDICTIONS_CSV = "predictions.csv"


def rank(
    predictions: "DataFrame | Mapping[str, Any] | str | Path | Sequence[str | Path]",
    columns: Mapping[str, str] | None = None,
    *,
    level: float = SIGNIFICANCE_LEVEL,
    deterministic: Sequence[str] = (),
) -> Ranking:
    """Rank models by accuracy on the same items, and test which differences are significant for new seeds and items.

    Args:
        predictions: a table with one row for each item, model and seed, and the columns `item`, `label`, `prediction`,
            `model` and `seed`; or paths of CSV files with such tables, or of folders of comparisons. The module
            `pointset.comparison.rank` describes the columns.
        columns: names of columns that are not in `COLUMN_ALIASES`, such as {"item": "uid", "label": "truth"}.
        level: significance level of all tests together.
        deterministic: name, or names, of models whose training has no seed, such as a support vector machine.

    Returns:
        The ranking; `str(ranking)` is the text that `pointset rank` prints.

    Raises:
        PointsetError: if a file or a column is missing; if a run lacks an item, or has it twice; if an item has
            different labels; if there are several datasets; if the level is not in (0, 1).

    Example:
        >>> table = {"item": [0, 1, 0, 1], "label": [3, 5, 3, 5], "prediction": [3, 5, 3, 3],
        ...          "model": ["svm", "svm", "tree", "tree"], "seed": [0, 0, 0, 0]}
        >>> pointset.rank(table).summary()
        'On 2 test items, svm has the best accuracy, 100.0 %.'
    """
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


def read_tables(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> "DataFrame":
    """Read CSV files of predictions, or predictions.csv in folders of comparisons, into one table; see `tidy`."""
    import pandas

    if not paths:
        raise PointsetError("no files of predictions were given: name at least one CSV file")
    tables = []
    for path in paths:
        file = path / PREDICTIONS_CSV if path.is_dir() else path
        match = IN_NAME.fullmatch(file.stem)
        model, seed = (match[1], int(match[2])) if match else (file.stem, 0)
        tables.append(tidy(read_table(file), columns, str(file), model, seed))
    return pandas.concat(tables, ignore_index=True)


def read_table(path: Path) -> "DataFrame":
    """Read a CSV file, and undo the escapes of `as_csv`. Only empty cells and nan are missing values."""
    import pandas

    try:
        require_file(path)
        # By default, pandas reads class names such as None and NA as missing values.
        table = pandas.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"]).rename(columns=from_text)
    except FileNotFoundError as error:
        remedy = "give a CSV file of predictions, or the folder of a finished comparison"
        raise PointsetError(f"{path} does not exist: {remedy}") from error
    except ValueError as error:
        raise PointsetError(f"{path} cannot be read as CSV: {error}") from error
    words = table.select_dtypes(exclude="number").columns
    return table.assign(**{name: table[name].map(from_text) for name in words})


def tidy(
    table: "DataFrame | Mapping[str, Any]",
    columns: Mapping[str, str] | None = None,
    what: str = "the table",
    model: str = "model",
    seed: int = 0,
) -> "DataFrame":
    """Return a table of predictions whose columns are the keys of `COLUMN_ALIASES`; messages call the table `what`.

    `model` and `seed` are used for all rows if the table has no such column. A PointsetError is raised if `item`,
    `label` or `prediction` is missing, a cell is empty, or the table has no rows. Rows without a label are left out
    with a warning.
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
    if (wrong := seeds % 1 != 0).any():  # text and infinities are wrong, too
        row = int(wrong.to_numpy().argmax())
        seed_there = quoted(str(tidied["seed"].iloc[row]))
        raise PointsetError(f"row {row + 1} of {what} has the seed {seed_there}: seeds must be whole numbers")
    return tidied.apply(_words).assign(seed=seeds.astype(int))


def _words(column: Any) -> Any:
    """Return a column as text. Booleans become 0 and 1, and whole numbers have no decimal point."""
    if column.dtype.kind == "b":
        column = column.astype(int)
    if column.dtype.kind != "f":
        return column.astype(str)
    return (column + 0.0).map(lambda value: str(value).removesuffix(".0"))  # + 0.0 replaces -0.0


def _columns_of(table: "DataFrame", columns: Mapping[str, str], what: str) -> dict[str, str]:
    """Return the name of the table's column for each key of `COLUMN_ALIASES`; keys without a column are left out."""
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
    """Return which items each model predicts correctly with each seed. `table` is a result of `tidy`.

    A PointsetError is raised if there are several datasets, a run lacks an item or has it twice, or an item has
    different labels.
    """
    if len(data := table["data"].unique()) > 1:
        known = ", ".join(data)
        raise PointsetError(
            f"the predictions are of {len(data)} datasets ({known}): rank those of one dataset at a time"
        )
    keys = ["model", "seed", "item"]
    if (again := table.duplicated(keys)).any():
        first = table[again].iloc[0]
        count = int((table[keys] == first[keys]).all(axis=1).sum())
        raise PointsetError(f"item {quoted(first['item'])} occurs {count} times for {_run(*first[keys[:2]])}: keep one")
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
