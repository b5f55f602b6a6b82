"""Read points from .npy and .npz files, and from text: .xyz, .txt, .csv, .pts and others.

Each line of text is a point. The names of the columns or the number of points may come first. Numbers are separated by
blanks, commas or semicolons. A comma is never a decimal point.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import (
    AXES,
    COLOR_COLUMNS,
    NORMAL_COLUMNS,
    Columns,
    named_columns,
    numbered,
    require_table,
    unnamed_columns,
    usual_name,
)
from pointset.data.readers.formats import read_text, take_declared, warn_of_rest
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.files import require_unpackable

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of the arrays of points and of normals in an .npz file; the first name that is present is used."""
FACE_KEYS = {"faces", "triangles"}
"""If an .npz file has an array with one of these names, its vertices are those of a mesh."""
NAMES_BY_SUFFIX = {
    (".xyzn", 6): [*AXES, *NORMAL_COLUMNS],
    (".xyzrgb", 6): [*AXES, *COLOR_COLUMNS[0]],
    (".pts", 4): [*AXES, "intensity"],
    (".pts", 6): [*AXES, *COLOR_COLUMNS[0]],
    (".pts", 7): [*AXES, "intensity", *COLOR_COLUMNS[0]],
}
"""Names of the columns of text files, by the suffix of the file and the number of columns."""
_FRACTION = re.compile(r"(?m)(^|,)-0,|,0\d")
"""Matches -0 and leading zeros: they are signs of decimal commas, not of whole numbers."""
_SEPARATOR = re.compile(r'"?sep=.?"?')
"""The line in which Excel names the separator."""
_COMMENT = re.compile(r"[ \t]*(#|//)")
_REMARK = re.compile(r"(#|//).*")


def npy_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of an array [n, d], or of an array [n] of records with named fields, in an .npy file."""
    with _pickles_refused(), path.open("rb") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        warn_of_rest(path, file.read())
    return _columns(array, features)


def npz_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of the points in an .npz file. A feature is a further column, or the array with its name."""
    with _pickles_refused(), np.load(path, allow_pickle=False) as arrays:
        require_unpackable(path, sum(info.file_size for info in arrays.zip.infolist()))
        is_mesh = not FACE_KEYS.isdisjoint(arrays.files)
        keys = arrays.files if len(arrays.files) == 1 else [key for key in POINT_KEYS if key in arrays]
        if not keys or (is_mesh and keys[0] == "vertices"):
            shapes = quoted(", ".join(f"{name} {list(arrays[name].shape)}" for name in arrays.files))
            expected = f"one cloud, an array [n, 3] called {' or '.join(POINT_KEYS)}"
            raise PointsetError(f"expected {expected}, found {shapes}: save each cloud as its own file")
        columns = dict(_columns(arrays[keys[0]], features))
        wanted = {name: name for name in features if name in arrays and name not in (*NORMAL_KEYS, keys[0])}
        if normals := [name for name in NORMAL_KEYS if name in arrays]:
            wanted["normals"] = normals[0]
        for name, stored in wanted.items():
            columns |= _feature_columns(name, arrays[stored], len(columns["x"]))
    return columns


@contextmanager
def _pickles_refused() -> Iterator[None]:
    """Raise the same error for all errors that numpy raises about arrays of Python objects."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, PointsetError) or not re.search("Object array|Python objects", str(error)):
            raise
        reason = "holds Python objects, which only pickle reads, and pickle runs any code in a file"
        raise PointsetError(f"{reason}: save each cloud as an array of numbers [n, 3] in its own file") from error


def text_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of a text file; each line is a point, except for the header and comments."""
    text = read_text(path)
    lines = re.split(r"\r\n|\n|\r", text)  # str.splitlines has further line ends
    names, count, first = _header(lines)
    if first == len(lines):
        raise PointsetError("expected a point cloud, found no point")
    mark = _separator(_REMARK.sub("", lines[first]))
    try:
        table = _numbers(lines[first:], mark, first)
    except PointsetError:
        if not names or mark is None or not (numeric := _numeric_columns(path, lines[first:], mark, names)):
            raise
        table, names = numeric
    if count is not None:
        table = take_declared(path, table, count, "points")
    width = table.shape[1]
    if names and len(names) != width:
        found = f"has {len(names)} names of columns, {quoted(', '.join(names))}, and {width} numbers in a line"
        raise PointsetError(f"{found}: it is damaged")
    names = names or NAMES_BY_SUFFIX.get((path.suffix.lower(), width), [])
    if not names and mark == "," and _may_have_decimal_commas(table, text):
        found = f"has {width} whole numbers in a line, or fewer numbers with decimal commas"
        raise PointsetError(f"{found}: write decimal points, or name the columns in a first line")
    columns = dict(named_columns(names, table.T) if names else unnamed_columns(table, features))
    for group in COLOR_COLUMNS:
        if {*group} <= {*columns} and not any((columns[name] % 1).any() for name in group):
            columns |= {name: columns[name].astype(np.int64) for name in group}  # 0 to 255, not fractions
    return columns


def _numeric_columns(
    path: Path, lines: Sequence[str], mark: str, names: list[str]
) -> tuple[np.ndarray, list[str]] | None:
    """Return the columns of numbers [n, columns] and their names; leave out other columns, such as labels.

    Empty cells are NaN. None is returned if the number of cells in a line differs from the number of names.
    """
    rows = [row for row in csv.reader(lines, delimiter=mark) if row]
    if any(len(row) != len(names) for row in rows):
        return None
    columns, left_out = dict[str, np.ndarray](), list[str]()
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        try:
            columns[name] = np.array([cell.strip() or "nan" for cell in cells], np.float64)
        except ValueError as error:
            if usual_name(name) in AXES:
                raise PointsetError(f"expected numbers for {name}: {one_line(error, REPEATED)}") from error
            left_out.append(name)
    if left_out:
        warnings.warn(f"{path}: columns that are not numbers are left out: {', '.join(left_out)}", stacklevel=4)
    return np.stack([*columns.values()], axis=1), [*columns]


def _may_have_decimal_commas(table: np.ndarray, text: str) -> bool:
    """Return True if pairs of columns of whole numbers could be decimal numbers with commas (6 columns as 3)."""
    if table.shape[1] < 6 or "." in text or (table[:, 1:6:2] < 0).any():
        return False
    return table.shape[1] == 6 or bool(_FRACTION.search(text))


def _columns(array: np.ndarray, features: Sequence[str]) -> Columns:
    if array.dtype.names and array.ndim == 1:
        return named_columns(array.dtype.names, (array[name] for name in array.dtype.names))
    return unnamed_columns(require_table(array), features)


def _feature_columns(name: str, array: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the columns of the array [n] or [n, f] of a feature."""
    columns = array[:, None] if array.ndim == 1 else array
    fits = columns.ndim == 2 and len(columns) == count and (name != "normals" or columns.shape[1] == 3)
    if not fits or columns.dtype.kind not in "fiub":
        raise PointsetError(f"expected as many {name} as points, {count:,}, found {array.dtype} {list(array.shape)}")
    names = NORMAL_COLUMNS if name == "normals" else numbered(name, columns.shape[1])
    return dict(zip(names, columns.T, strict=True))


def _header(lines: Sequence[str]) -> tuple[list[str], int | None, int]:
    """Return column names (empty if there are none), number of points (or None) and index of the first point's line.

    Names in a comment are used if there is one for each number in the first point's line.
    """
    names, remark, count = list[str](), list[str](), None
    for place, line in enumerate(lines):
        is_comment = bool(_COMMENT.match(line))
        words = _words(_COMMENT.sub("", line))
        if {*AXES} <= {usual_name(word) for word in words}:
            names, remark = (names, words) if is_comment else (words, remark)
        elif not is_comment and count is None and len(words) == 1 and words[0].isdigit():
            count = int(words[0])
        elif not is_comment and any(words) and not (place == 0 and _SEPARATOR.fullmatch(line)):
            return names or remark * (len(remark) == len(_words(_REMARK.sub("", line)))), count, place
    return names, count, len(lines)


def _words(line: str) -> list[str]:
    """Split a line at semicolons, else at commas, else at blanks, and remove quotes."""
    mark = _separator(line)
    return [word.strip(' \t"') for word in line.strip().removesuffix(mark or " ").split(mark)]


def _separator(line: str) -> str | None:
    return next((mark for mark in ";," if mark in line), None)


def _numbers(lines: Sequence[str], mark: str | None, first: int) -> np.ndarray:
    """Return the numbers of the lines, float64 [lines, columns]; `first` is the index of the first line in the file."""
    text = "\n".join(lines)
    if "#" in text or "//" in text:
        text = _REMARK.sub("", text)
    if mark is not None:  # remove quotes around numbers, and separators at the ends of lines
        text = re.sub(rf"{mark}[ \t]*$", "", text.replace('"', ""), flags=re.MULTILINE)
    try:
        return np.loadtxt(io.StringIO(text), np.float64, comments=None, delimiter=mark, ndmin=2)
    except ValueError as error:
        rows = [(number, line) for number, line in enumerate(text.split("\n"), start=first + 1) if line.strip()]
        width = len(rows[0][1].split(mark))
        for number, line in rows:
            words = line.split(mark)
            if len(words) != width or not all(map(_is_number, words)):
                expected = f"expected {width} numbers, with decimal points and one separator"
                raise PointsetError(f"line {number}: {expected}, found {quoted(line.strip())}") from error
        raise


def _is_number(word: str) -> bool:
    try:
        return float(word) is not None
    except ValueError:
        return False
