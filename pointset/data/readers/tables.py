"""Read points from .npy and .npz files, and from text: .xyz, .txt, .csv, .pts and others, as programs write them.

A line of text is a point. The names of the columns, or the number of points, may come first. Numbers are separated by
blanks, commas or semicolons; a comma is never a decimal point.
"""

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import (
    AXES,
    COLOR_COLUMNS,
    NORMAL_COLUMNS,
    Columns,
    looks_transposed,
    named_columns,
    numbered,
    unnamed_columns,
    usual_name,
)
from pointset.data.readers.formats import require_count, warn_of_rest
from pointset.data.readers.lines import UTF_16
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file, require_unpackable

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of points and normals in an .npz file; the first name that is present is used."""
FACE_KEYS = ("faces", "triangles")
"""Names of arrays that show that an .npz file holds a mesh."""
NAMES_BY_SUFFIX = {
    (".xyzn", 6): [*AXES, *NORMAL_COLUMNS],
    (".xyzrgb", 6): [*AXES, *COLOR_COLUMNS[0]],
    (".pts", 4): [*AXES, "intensity"],
    (".pts", 6): [*AXES, *COLOR_COLUMNS[0]],
    (".pts", 7): [*AXES, "intensity", *COLOR_COLUMNS[0]],
}
"""The columns of text files whose suffix and number of columns say what they are."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
_FRACTION = re.compile(r"(?m)(^|,)-0,|,0\d")
"""What whole numbers do not have: -0, and a zero before other digits."""
_SEPARATOR = re.compile(r'"?sep=.?"?')
"""Excel's line that names the separator."""
_COMMENT = re.compile(r"[ \t]*(#|//)")
_REMARK = re.compile(r"(#|//).*")


def npy_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of an array [n, d], or of an array [n] of records with named fields, in an .npy file."""
    with _pickles_refused():
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        raise PointsetError("expected one array, found an archive")
    content, end = np.memmap(path, np.uint8, "r"), array.offset + array.nbytes
    require_count(min(len(content), end), end, "bytes")
    warn_of_rest(path, content[end:])
    return _columns(array, features)


def npz_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of the points in an .npz file; features are further columns, or arrays by their names."""
    with zipfile.ZipFile(path) as archive:
        require_unpackable(path, sum(info.file_size for info in archive.infolist()))
    with _pickles_refused(), np.load(path, allow_pickle=False) as arrays:
        key = next((key for key in POINT_KEYS if key in arrays), arrays.files[0] if len(arrays.files) == 1 else None)
        if key is None:
            shapes = quoted(", ".join(f"{name} {list(arrays[name].shape)}" for name in arrays.files))
            expected = f"one cloud, an array [n, 3] called {' or '.join(POINT_KEYS)}"
            raise PointsetError(f"expected {expected}, found {shapes}: save each cloud as its own file")
        if key == "vertices" and {*FACE_KEYS} & {*arrays.files}:
            raise PointsetError("is a mesh, and .npz files are read as clouds: save it as .off, .obj or .ply")
        columns = dict(_columns(arrays[key], features))
        normals = next((name for name in NORMAL_KEYS if name in arrays), None)
        wanted = {name: name for name in features if name in arrays and name not in (*NORMAL_KEYS, key)}
        for name, stored in (wanted | ({"normals": normals} if normals else {})).items():
            columns |= _feature_columns(name, arrays[stored], len(columns["x"]))
    return columns


@contextmanager
def _pickles_refused() -> Iterator[None]:
    """Raise one error for arrays of Python objects; numpy has several."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, PointsetError) or not re.search("Object array|Python objects", str(error)):
            raise
        raise PointsetError(
            "holds Python objects, which only pickle reads, and pickle runs any code in a file: save each cloud as an "
            "array of numbers [n, 3] in its own file"
        ) from error


def text_columns(path: Path, features: Sequence[str]) -> Columns:
    """Return the columns of a text file, of which every line is a point, except for its header and comments."""
    content = read_file(path)
    try:
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines = re.split(r"\r\n|\n|\r", text)  # no others
    names, remark, count, first = _header(lines)
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
        require_count(min(len(table), count), count, "points")
        warn_of_rest(path, table[count:], "lines")
        table = table[:count]
    width = table.shape[1]
    if names and len(names) != width:
        found = f"has {len(names)} names of columns, {quoted(', '.join(names))}, and {width} numbers in a line"
        raise PointsetError(f"{found}: it is damaged")
    if len(remark) == width:
        names = names or remark
    names = names or NAMES_BY_SUFFIX.get((path.suffix.lower(), width), [])
    if not names and mark == "," and _may_have_decimal_commas(table, text):
        raise PointsetError(
            f"has {width} whole numbers in a line, or fewer with decimal commas: write decimal points, or name "
            "the columns in a first line"
        )
    columns = dict(named_columns(names, table.T) if names else unnamed_columns(table, features))
    for group in COLOR_COLUMNS:
        if {*group} <= {*columns} and not any((columns[name] % 1).any() for name in group):
            columns |= {name: columns[name].astype(np.int64) for name in group}  # 0 to 255, not fractions
    return columns


def _numeric_columns(
    path: Path, lines: Sequence[str], mark: str, names: list[str]
) -> tuple[np.ndarray, list[str]] | None:
    """Return the columns of numbers [n, columns] and their names, without others, such as labels; empty cells are NaN.

    None if a line has another number of cells.
    """
    rows = [row for row in csv.reader(lines, delimiter=mark) if row]
    if any(len(row) != len(names) for row in rows):
        return None
    import pandas as pd  # takes a second

    frame = pd.DataFrame(rows, columns=names).replace("", None)
    numbers = frame.apply(pd.to_numeric, errors="coerce")
    left_out = [name for name in names if numbers[name].count() < frame[name].count()]
    if damaged := [name for name in left_out if usual_name(name) in AXES]:
        row = int(np.argmax(numbers[damaged[0]].isna() & frame[damaged[0]].notna()))
        raise PointsetError(f"point {row}: expected a number for {damaged[0]}, found {quoted(frame[damaged[0]][row])}")
    if left_out:
        warnings.warn(f"{path}: columns that are not numbers are left out: {', '.join(left_out)}", stacklevel=4)
    return numbers.drop(columns=left_out).to_numpy(np.float64), [name for name in names if name not in left_out]


def _may_have_decimal_commas(table: np.ndarray, text: str) -> bool:
    """Return True if pairs of the first six whole numbers of a line could be the two parts of a decimal number.

    Six columns have two readings; more, which are often colors, only if some numbers look like parts of fractions.
    """
    parts = table[:, 1:6:2]
    if table.shape[1] < 6 or "." in text or (parts < 0).any():
        return False
    return table.shape[1] == 6 or bool(_FRACTION.search(text)) or bool((parts.max(axis=0) > 255).all())


def _columns(array: np.ndarray, features: Sequence[str]) -> Columns:
    if array.dtype.names and array.ndim == 1:
        return named_columns(array.dtype.names, (array[name] for name in array.dtype.names))
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind not in "fiu":
        found = f"{array.dtype} {list(array.shape)}"
        several = ": save each cloud as its own file, or pass all to from_arrays" if array.ndim == 3 else ""
        raise PointsetError(f"expected numbers [n, 3] or more columns, found {found}{several}")
    if looks_transposed(*array.shape):
        raise PointsetError(f"expected numbers [n, 3], found {list(array.shape)}: it looks transposed, save array.T")
    return unnamed_columns(array, features)


def _feature_columns(name: str, array: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the columns of a feature's array [n] or [n, f]."""
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2 or len(columns) != count or columns.dtype.kind not in "fiub":
        raise PointsetError(f"expected as many {name} as points, {count:,}, found {array.dtype} {list(array.shape)}")
    if name == "normals" and columns.shape[1] != len(NORMAL_COLUMNS):
        raise PointsetError(f"expected normals [n, 3], found {list(array.shape)}")
    names = NORMAL_COLUMNS if name == "normals" else numbered(name, columns.shape[1])
    return dict(zip(names, columns.T, strict=True))


def _header(lines: Sequence[str]) -> tuple[list[str], list[str], int | None, int]:
    """Names of columns, names in a comment, number of points, where the file says them, and the first point's line."""
    names, remark, count = list[str](), list[str](), None
    for place, line in enumerate(lines):
        is_comment = bool(_COMMENT.match(line))
        words = _words(_COMMENT.sub("", line))
        if {*AXES} <= {usual_name(word) for word in words}:
            names, remark = (names, words) if is_comment else (words, remark)
        elif not is_comment and count is None and len(words) == 1 and words[0].isdigit():
            count = int(words[0])
        elif not is_comment and any(words) and not (place == 0 and _SEPARATOR.fullmatch(line)):
            return names, remark, count, place
    return names, remark, count, len(lines)


def _words(line: str) -> list[str]:
    """Split a line at semicolons, else at commas, else at blanks; quotes are removed."""
    mark = _separator(line)
    return [word.strip(' \t"') for word in line.strip().removesuffix(mark or " ").split(mark)]


def _separator(line: str) -> str | None:
    return next((mark for mark in ";," if mark in line), None)


def _numbers(lines: Sequence[str], mark: str | None, first: int) -> np.ndarray:
    """Return the numbers float64 [lines, columns]; the lines begin at the index `first` of the file."""
    text = "\n".join(lines)
    if "#" in text or "//" in text:
        text = _REMARK.sub("", text)
    if mark is not None:  # quotes around numbers, and a separator at the end of a line
        text = re.sub(rf"{mark}[ \t]*$", "", text.replace('"', ""), flags=re.MULTILINE)
    try:
        return np.loadtxt(io.StringIO(text), np.float64, comments=None, delimiter=mark, ndmin=2)
    except ValueError as error:
        width = 0
        for number, line in enumerate(text.split("\n"), start=first + 1):
            words = line.split(mark) if line.strip() else []
            width = width or len(words)
            if len(words) not in (0, width) or not all(_NUMBER.fullmatch(word.strip()) for word in words):
                expected = f"expected {width} numbers, with decimal points and one separator"
                raise PointsetError(f"line {number}: {expected}, found {quoted(line.strip())}") from error
        raise
