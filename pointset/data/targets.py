"""What is learned beside classes: numbers for the shapes of a folder, from a table, and labels per point."""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from pointset.data.unusable import OnError, refuse_or_leave_out
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.files import MOST_SETTINGS, read_file
from pointset.runs.spreadsheets import from_text

TARGETS_FILE = "targets.csv"
"""Name of the table in the folder of the shapes."""
LABEL_NAMES_FILE = "labels.json"
"""File in a folder of clouds with the names of labels, {"2": "ground", "6": "building"}."""
MOST_POINT_CLASSES = 1000
"""More labels are a column of something else, such as numbers of points."""
UNLABELLED = -1
"""The class of points without a label, and of padding."""


def targets_file(folder: Path, given: str | None) -> Path:
    """The table with the targets of a folder: the given file, or targets.csv; a PointsetError if it is missing."""
    file = folder / TARGETS_FILE if given is None else Path(given)
    if not file.exists():
        raise PointsetError(
            f"{file} does not exist: write a table whose first column is the file of a shape, relative to {folder}, "
            "and whose other columns are numbers, or name one with --targets"
        )
    return file


def join_targets(
    file: Path, names: Sequence[str], target: Sequence[str], folder: Path | None, on_error: OnError = "raise"
) -> Float[ndarray, "shapes targets"]:
    """The targets of shapes, by their names, from the rows of a table.

    The file is comma, semicolon or tab separated, with a line of column names. Its first column has names of shapes,
    which are files in the folder, if one is given; `target` are the columns to read. A shape without a row is NaN, if
    `on_error` is "skip".

    Raises:
        PointsetError: a column or a row is missing, a row has no file or occurs twice, or a value is not a number.
    """
    rows: dict[str, list[float]] = {}
    wanted = set(names)
    for line, name, cells in _read(file, target):
        where = f"{file}, line {line}"
        if name in rows:
            raise PointsetError(f"{where} is the second row for {quoted(name)}: delete one")
        rows[name] = [_number(cells.get(column, ""), f"{where}: {column} of {quoted(name)}") for column in target]
        if folder is not None and name not in wanted and not (folder / name).exists():
            raise PointsetError(f"{where}: {quoted(name)} is not a file of {folder}: correct it, or delete the row")
    lacking = {name: f"{quoted(name)} has no row in {file}" for name in names if name not in rows}
    refuse_or_leave_out(lacking, len(names) - len(lacking), on_error, "shapes", "add rows, or move the files away")
    nothing = [math.nan] * len(target)
    return np.array([rows.get(name, nothing) for name in names], np.float64).reshape(len(names), len(target))


def _read(file: Path, target: Sequence[str]) -> Iterator[tuple[int, str, Mapping[str, str]]]:
    """Line, shape and cells of every row."""
    try:
        lines = io.StringIO(read_file(file).decode("utf-8-sig"), newline="")
        separator = max(",;\t", key=lines.readline().count)
        lines.seek(0)
        reader = csv.reader(lines, delimiter=separator)
        columns = [from_text(column.strip()) for column in next(reader, [])]
        rows = [(reader.line_num, cells) for cells in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise PointsetError(f"{file} is not a table in UTF-8 ({one_line(error, REPEATED)}): save it as CSV") from error
    for name in target:
        if columns[1:].count(name) != 1:
            known = one_line(", ".join(columns[1:]), REPEATED) or "none beside the first"
            raise PointsetError(f"{file} must have one column {quoted(name)}: its columns are {known}")
    for line, cells in rows:
        if any(map(str.strip, cells)):
            name = from_text(cells[0].strip()).replace("\\", "/").removeprefix("./")
            yield line, name, dict(zip(columns, cells, strict=False))


def _number(cell: str, what: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise PointsetError(
            f"{what} is {quoted(cell.strip())} and must be a finite number: correct it, or delete the row and move the "
            "file away"
        )
    return number


def name_labels(
    labels: NDArray[np.int32], source: Path | str, names: Mapping[int, str] | None = None
) -> dict[int, str]:
    """The classes of points: the labels that occur, negative ones left out, or all those that have names.

    Names that are not given are taken from `labels.json` in the folder of the clouds, if the source is one that has it.

    Raises:
        PointsetError: a label has no name, no point has a label, or `labels.json` is not a table of names.
    """
    values = [value for value in np.unique(labels).tolist() if value > UNLABELLED]
    if not values:
        raise PointsetError(f"no point of {source} has a label from 0 up: negative labels mean that there is none")
    if len(values) > MOST_POINT_CLASSES:
        raise PointsetError(f"the points of {source} have {len(values):,} labels: give at most {MOST_POINT_CLASSES:,}")
    where = str(source)
    if names is None and isinstance(source, Path) and (source / LABEL_NAMES_FILE).exists():
        names, where = _read_names(source / LABEL_NAMES_FILE), str(source / LABEL_NAMES_FILE)
    if names is None:
        return {value: str(value) for value in values}
    if missing := [value for value in values if value not in names]:
        raise PointsetError(f"{where} has no name for the label {missing[0]}: add it, or correct the label")
    return dict(names)


def _read_names(file: Path) -> dict[int, str]:
    try:
        table = json.loads(read_file(file, MOST_SETTINGS))
        names = {int(value): name for value, name in table.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise PointsetError(f'{file} must be a table of names by label, such as {{"2": "ground"}}') from error
    if not all(isinstance(name, str) and name for name in names.values()) or len({*names.values()}) < len(names):
        got = quoted(", ".join(map(str, names.values())))
        raise PointsetError(f"{file} must have a name of its own for each label, got {got}")
    return dict(sorted(names.items()))


def classes_of(labels: NDArray[np.int32], point_classes: Mapping[int, str]) -> NDArray[np.int64]:
    """The index of the class of each label, in the order of `point_classes`; `UNLABELLED` for all others."""
    values = np.fromiter(point_classes, np.int64, len(point_classes))
    order = values.argsort()
    places = order[values.searchsorted(labels, sorter=order).clip(max=len(values) - 1)]
    return np.where(values[places] == labels, places, UNLABELLED)
