"""Numbers to predict for the shapes of a folder, from a table: the first column is the file, the others are numbers."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from pointset.data.unusable import OnError, refuse_or_leave_out
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.files import read_file

FILE = "targets.csv"
"""Name of the table in the folder of the shapes."""


def targets_file(folder: Path, given: str | None) -> Path:
    """The table with the targets of a folder: the given file, or targets.csv in the folder.

    Raises:
        PointsetError: the file does not exist.
    """
    file = folder / FILE if given is None else Path(given)
    if not file.exists():
        raise PointsetError(
            f"{file} does not exist: write a table whose first column is the file of a shape, relative to {folder}, "
            "and whose other columns are numbers, or name one with --targets"
        )
    return file


def join_targets(
    file: Path, names: Sequence[str], target: Sequence[str], folder: Path | None, on_error: OnError = "raise"
) -> Float[ndarray, "shapes targets"]:
    """The targets of shapes, from the rows of a table.

    Args:
        file: comma, semicolon or tab separated, with a line of column names.
        names: names of the shapes: their paths relative to the folder.
        target: names of the columns to read.
        folder: folder in which every row must have its file; None does not check that.
        on_error: "skip" gives a shape without a row NaN, with a warning.

    Raises:
        PointsetError: a column or a row is missing, a row has no file or occurs twice, or a value is not a number.
    """
    rows = _read(file, target)
    values = {name: _numbers(file, line, name, row, target) for name, (line, row) in rows.items()}
    wanted = set(names)
    for name, (line, _) in rows.items():
        if folder is not None and name not in wanted and not (folder / name).exists():
            raise PointsetError(
                f"{file}, line {line}: {quoted(name)} is not a file of {folder}: correct the name, or delete the row"
            )
    lacking = {name: f"{quoted(name)} has no row in {file}" for name in names if name not in values}
    refuse_or_leave_out(lacking, len(names) - len(lacking), on_error, "shapes", "add rows, or move the files away")
    nothing = [math.nan] * len(target)
    return np.array([values.get(name, nothing) for name in names], np.float64).reshape(len(names), len(target))


def _read(file: Path, target: Sequence[str]) -> dict[str, tuple[int, Mapping[str, str]]]:
    """Line and cells of every row, by the name of its shape."""
    try:
        lines = read_file(file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise PointsetError(f"{file} is not a text in UTF-8: save it as CSV") from error
    separator = max(",;\t", key=(lines or [""])[0].count)
    reader = csv.reader(lines, delimiter=separator)
    columns = [column.strip() for column in next(reader, [])]
    for name in target:
        if name not in columns[1:]:
            known = one_line(", ".join(columns[1:]), REPEATED) or "none beside the first"
            raise PointsetError(f"{file} has no column {quoted(name)}: its columns are {known}")
        if columns.count(name) > 1:
            raise PointsetError(f"{file} has {columns.count(name)} columns {quoted(name)}: rename or delete one")
    rows: dict[str, tuple[int, Mapping[str, str]]] = {}
    for cells in reader:
        if not any(map(str.strip, cells)):
            continue
        name = cells[0].strip().replace("\\", "/").removeprefix("./")
        if name in rows:
            raise PointsetError(
                f"{file} has two rows for {quoted(name)}, lines {rows[name][0]} and {reader.line_num}: delete one"
            )
        rows[name] = reader.line_num, dict(zip(columns, cells, strict=False))
    return rows


def _numbers(file: Path, line: int, name: str, row: Mapping[str, str], target: Sequence[str]) -> list[float]:
    numbers = []
    for column in target:
        cell = row.get(column, "").strip()
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise PointsetError(
                f"{file}, line {line}: {column} of {quoted(name)} is {quoted(cell)} and must be a finite number: "
                "correct it, or delete the row and move the file away"
            )
        numbers.append(number)
    return numbers
