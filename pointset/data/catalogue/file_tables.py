"""Read CSV and TSV tables with labels, splits and groups of files, or with files to leave out."""

import csv
import hashlib
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from pointset.data.catalogue.scan import FileTree
from pointset.data.readers.formats import SHAPE_SUFFIXES, read_text, suffix_of
from pointset.errors import REPEATED, PointsetError, counted, one_line, quoted
from pointset.runs.spreadsheets import from_text

COLUMNS = {
    "file": ("file", "path", "filename", "name"),
    "label": ("label", "class", "category"),
    "split": ("split",),
    "group": ("group", "object"),
}
"""The columns that are read, each with the names that it may have, in any letter case."""
TABLE_SUFFIXES = (".csv", ".tsv")
SEPARATORS = ",;\t"
Cells = dict[str, str]
"""Cells of one row, by column (a key of `COLUMNS`)."""


def is_table(text: str) -> bool:
    """Return True if a text is the path of a table."""
    return text.lower().endswith(TABLE_SUFFIXES)


def read_rows(option: str, path: Path, folder: Path) -> tuple[Path, list[list[str]]]:
    """Return the path of a table and the cells of its rows; the first row may be a header.

    Cells are separated by commas, semicolons or tabs, whichever is most frequent in the first row. The text is UTF-8,
    UTF-16 with a byte order mark, or Windows-1252.

    Args:
        option: name of the option, for errors.
        path: path of the table, relative to the working directory or to the `folder`.
        folder: the folder of the data.

    Raises:
        PointsetError: the table does not exist, cannot be read or is empty.
    """
    fault = f"--{option} {path} must be a table with a column of files"
    found = next((table for table in (path, folder / path) if table.exists()), None)
    if found is None:
        raise PointsetError(f"--{option} {path} does not exist, neither here nor in {folder.name}")
    try:
        lines = read_text(found).splitlines(keepends=True)
        if lines and lines[0].lower().startswith("sep="):  # names the separator for Excel
            del lines[0]
        unquoted = "".join("".join(lines[:1]).split('"')[::2])
        separator = max(SEPARATORS, key=unquoted.count)
        rows = [[from_text(cell).strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    except (OSError, ValueError, csv.Error) as error:
        raise PointsetError(f"{fault}: {error}") from error
    if not (rows := [row for row in rows if any(row)]):
        raise PointsetError(f"{fault}: it is empty")
    return found, rows


def rows_by_file(
    option: str, path: Path, folder: Path, names: Iterable[str], wanted: str = "", *, complete: bool = True
) -> dict[str, Cells]:
    """Read a table, and return the cells of each file that has a row.

    A row names a file by path or, if the name is unique, by name alone. Paths are relative to the folder, to its
    parent folder or to the folder of the table. The suffix may be missing, and slashes may be backslashes. Without a
    header, the first column is the file and the second is `wanted`.

    Args:
        option: name of the option, for messages.
        path: path of the table, relative to the working directory or to the folder.
        folder: the folder of the data.
        names: paths of files, relative to the folder.
        wanted: name of the column that the table must have in addition to the files.
        complete: True if `names` are all files. Rows without a file then give a warning, or an error if no row has a
            file.

    Raises:
        PointsetError: the table cannot be read, lacks a column, names no file, or has two different rows for one file.
    """
    path, rows = read_rows(option, path, folder)
    match = matcher(folder, path.parent, names)
    header = [cell.casefold() for cell in rows[0]]
    columns = {
        column: header.index(name) for column, names in COLUMNS.items() for name in reversed(names) if name in header
    }
    place = columns.setdefault("file", 0)
    if len(columns) > 1 or match(rows[0][place]) is None:  # the first row is a header
        unknown = [quoted(name) for at, name in enumerate(rows.pop(0)) if name and at not in columns.values()]
        others = one_line(", ".join(unknown), REPEATED)
        if unknown and wanted and wanted not in columns:
            raise PointsetError(f"--{option} {path} has no column {quoted(wanted)}: rename one of {others} to it")
        if unknown and option == "labels":
            unused = f"column {others} is" if len(unknown) == 1 else f"columns {others} are"
            warnings.warn(f"{path.name}: {unused} not used (known: {', '.join(COLUMNS)})", UserWarning, stacklevel=3)
    if wanted:
        columns.setdefault(wanted, int(place == 0))
    cells: dict[str, Cells] = {}
    unmatched = []
    for row in rows:
        of_row = {column: row[place] if place < len(row) else "" for column, place in columns.items()}
        name = match(cell := of_row.pop("file"))
        if name is None:
            unmatched.append(cell)
        elif cells.setdefault(name, of_row) != of_row:
            raise PointsetError(f"--{option} {path} has two different rows for {quoted(name)}: delete one")
    if cells and wanted and not any(of_row.get(wanted) for of_row in cells.values()):
        raise PointsetError(f"--{option} {path} has no {wanted}: give it a column {quoted(wanted)}")
    if complete and not cells:
        raise PointsetError(
            f"--{option} {path} names no file of {folder}: its first row has {quoted(''.join(unmatched[:1]))}"
        )
    if complete and unmatched:
        first = one_line(", ".join(unmatched), REPEATED)
        warnings.warn(f"{path}: {counted(len(unmatched), 'row')} without a file in {folder}: {first}", stacklevel=2)
    return cells


def matcher(folder: Path, table_folder: Path, names: Iterable[str]) -> Callable[[str], str | None]:
    """Return a function that maps a cell of a table to the file that the cell names, or to None."""
    of_key: dict[str, str | None] = {}
    exact = {*names}
    for name in exact:
        last = name.rpartition("/")[2]
        for key in {_stem(name), last, _stem(last)} - exact:
            of_key[key] = name if of_key.get(key, name) == name else None  # ambiguous keys name no file

    def match(cell: str) -> str | None:
        path = unicodedata.normalize("NFC", cell.replace("\\", "/").removeprefix("./"))
        resolved = ((base / path).resolve() for base in (folder, table_folder, folder.parent) if path)
        inside = (key.relative_to(folder).as_posix() for key in resolved if key.is_relative_to(folder))
        spellings = (spelling for key in chain((path,), inside) for spelling in (key, _stem(key)))
        return next((file for key in spellings if (file := key if key in exact else of_key.get(key))), None)

    return match


def _stem(name: str) -> str:
    suffix = suffix_of(name)
    return name[: -len(suffix)] if suffix in SHAPE_SUFFIXES else name


def keep_labeled(tree: FileTree, labels: str) -> dict[str, Cells]:
    """Leave out the files of a tree that have no label in a table, and return the rows of the table by file."""
    tree.files |= tree.beside
    tree.beside.clear()
    table = Path(labels)
    there = (table if table.exists() else tree.path / table).resolve()
    tree.files = {name: path for name, path in tree.files.items() if path.resolve() != there}
    rows = rows_by_file("labels", table, tree.path, tree.files, "label")
    tree.skip(f"without a row in {table.name}", [name for name in tree.files if name not in rows])
    tree.skip(f"without a label in {table.name}", [name for name in rows if not rows[name]["label"]])
    return rows


def saved_frame(frame: Any, folder: Path) -> str:
    """Write a pandas DataFrame to a CSV file in a folder, and return its path. The name is a hash of the content."""
    text = frame.to_csv(index=False)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)
