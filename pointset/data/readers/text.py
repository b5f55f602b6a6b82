"""Read points from text: .xyz, .txt, .csv, .pts and others, as programs write them.

A line is a point. Lines may be separated from a header: the names of the columns, or the number of points. Numbers are
separated by blanks, commas or semicolons; a comma is never a decimal point.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.columns import AXES, COLORS, NORMALS, Columns, plain_names, usual_names
from pointset.data.readers.paths import read_regular
from pointset.errors import PointsetError, one_line, quoted

NAMES = {
    (".xyzn", 6): [*AXES, *NORMALS],
    (".xyzrgb", 6): [*AXES, *COLORS[0]],
    (".pts", 4): [*AXES, "intensity"],
    (".pts", 6): [*AXES, *COLORS[0]],
    (".pts", 7): [*AXES, "intensity", *COLORS[0]],
}
"""The columns of files whose suffix and number of columns say what they are."""
_COMMENT = re.compile(r"[ \t]*(#|//)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)


def text_columns(path: Path, features: Sequence[str]) -> Columns:
    """The columns of a file of text.

    Raises:
        PointsetError: a line is not a point, or there are more or fewer than the file says; the message has the line.
    """
    content = read_regular(path)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise PointsetError("expected plain text, found UTF-16: save it as UTF-8")
    numbered = enumerate(content.removeprefix(b"\xef\xbb\xbf").decode("latin-1").splitlines(), 1)
    lines = [(number, line) for number, line in numbered if line.strip()]
    names, count, lines = _without_header(lines)
    if not lines:
        raise PointsetError("expected a point cloud, found no point")
    if count is not None and count != len(lines):
        raise PointsetError(f"has {len(lines):,} points, and its first line says {count:,}: it is cut off or damaged")
    mark = _separator(lines[0][1])
    table = _table(lines, mark)
    width = table.shape[1]
    if names and len(names) != width:
        found = f"{len(names)} names of columns, {quoted(', '.join(names))}"
        raise PointsetError(f"has {found}, and {width} numbers in a line: it is damaged")
    named = usual_names(names) if names else NAMES.get((path.suffix.lower(), width)) or plain_names(width, features)
    columns = {name: table[:, index] for index, name in enumerate(named)}
    for group in COLORS:
        if {*group} <= {*named} and not any((columns[name] % 1).any() for name in group):
            columns |= {name: columns[name].astype(np.int64) for name in group}  # 0 to 255, not fractions
    return columns


def number_table(lines: Sequence[str], width: int, what: str) -> np.ndarray:
    """Numbers float64 [lines, width], separated by blanks.

    Raises:
        PointsetError: a line has another number of numbers, or words; `what` is named.
    """
    table = _parsed("\n".join(lines), None) if lines else np.empty((0, width))
    if table is None or table.shape[1] != width:
        wrong = next((line for line in lines if not _is_row(line.split(), width)), lines[0])
        raise PointsetError(f"expected {width} numbers in each line of {what}, found {quoted(wrong, 40)}")
    return table


def _without_header(lines: list[tuple[int, str]]) -> tuple[list[str], int | None, list[tuple[int, str]]]:
    """Names of columns and number of points, where the file says them, and the lines of points."""
    names: list[str] = []
    is_remark = False
    count: int | None = None
    first = 0
    for _, line in lines[:100]:
        text = _COMMENT.sub("", line)
        mark = next((mark for mark in ";," if mark in text), None)
        words = [word.strip() for word in text.split(mark) if word.strip()]  # names may have blanks between commas
        is_comment = bool(_COMMENT.match(line))
        if len(words) >= 3 and {"x", "y", "z"} <= {word.lower().strip('"') for word in words}:
            names, is_remark = [word.strip('"') for word in words], is_comment
        elif not is_comment and len(words) == 1 and words[0].isdigit() and count is None:
            count = int(words[0])
        elif not is_comment:
            break
        first += 1
    points = [(number, line) for number, line in lines[first:] if not _COMMENT.match(line)]
    if is_remark and points and len(points[0][1].replace(",", " ").replace(";", " ").split()) != len(names):
        names = []  # a remark, such as "# x y z" above points with normals
    return names, count, points


def _separator(line: str) -> str | None:
    """The separator of the numbers of a line: a comma, a semicolon, or None for blanks."""
    data = line.partition("#")[0].partition("//")[0]
    marks = [mark for mark in (";", ",") if mark in data]
    if len(marks) > 1 or (
        marks and any(len(word.split()) > 1 for word in data.strip().strip(marks[0]).split(marks[0]))
    ):
        raise PointsetError("expected one separator between all numbers, found several: write decimal commas as points")
    return marks[0] if marks else None


def _table(lines: Sequence[tuple[int, str]], mark: str | None) -> np.ndarray:
    text = "\n".join(line for _, line in lines)
    if "#" in text or "//" in text:
        text = re.sub(r"(#|//).*", "", text)
    table = _parsed(text, mark)
    if table is not None:
        return table
    width = len(lines[0][1].partition("#")[0].partition("//")[0].split(mark))
    for number, line in lines:
        words = [word.strip() for word in line.partition("#")[0].partition("//")[0].split(mark)]
        if not _is_row(words, width):
            wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
            found = f"{len(words)}" if wrong is None else quoted(wrong, 40)
            expected = f"{width} numbers as in the lines before" if wrong is None else "a number"
            raise PointsetError(f"line {number}: expected {expected}, found {found}")
    raise PointsetError(f"line {lines[0][0]}: expected numbers, found {one_line(lines[0][1], 40)}")


def _is_row(words: Sequence[str], width: int) -> bool:
    return len(words) == width and all(map(_NUMBER.fullmatch, words))


def _parsed(text: str, mark: str | None) -> np.ndarray | None:
    """Numbers [lines, columns] by numpy, or None; only characters of decimal numbers, nan and inf are accepted."""
    if set(text) - set("0123456789+-.eE \t\r\n,;nNaAiIfFtTyY\v\f"):
        return None
    try:
        return np.loadtxt(io.StringIO(text), np.float64, comments=None, delimiter=mark, ndmin=2)
    except ValueError:
        return None
