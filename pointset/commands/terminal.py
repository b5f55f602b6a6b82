"""Output of the commands: text and tables, or JSON. Control characters in names are escaped."""

import contextlib
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from pointset.errors import escaped, one_line
from pointset.runs.progress import write_line

NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?")


@contextlib.contextmanager
def warning_in_one_line() -> Iterator[None]:
    """Print each warning for the user once, as one line on stderr, without the place in the code."""
    shown = set[str]()
    show = warnings.showwarning

    def print_warning(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        line = one_line(message)
        if re.match(r"Glyph .* missing from", line):  # of matplotlib, for each letter
            line = "the font of pictures lacks some letters, which are boxes in .png and .pdf files: write .svg files"
        if category is not UserWarning:
            show(message, category, *place, **rest)
        elif line not in shown:
            shown.add(line)
            write_line(f"pointset: warning: {line}")  # above progress bars

    with warnings.catch_warnings():
        warnings.showwarning = print_warning
        yield


Table = list[dict[str, Any]]


class Result:
    """Output of a command: data and text.

    Args:
        data: plain data, which --json prints.
        text: lines, tables (lists of rows) and named facts (dicts), which are printed without --json.
        failure: an error to raise after printing.
    """

    def __init__(self, data: Any, *text: str | Table | dict[str, Any], failure: BaseException | None = None) -> None:
        self.data, self.text, self.failure = data, text, failure

    def show(self, as_json: bool) -> None:
        """Print the output as JSON or as text, then raise the failure if there is one."""
        if as_json:
            print(json.dumps(self.data, indent=2))
        else:
            for part in self.text:
                print(escaped(part) if isinstance(part, str) else as_table(part))
        if self.failure is not None:
            raise self.failure


def as_table(rows: Table | dict[str, Any]) -> str:
    """Return rows as a table with the keys of the rows as header, or a dict of facts as one line per fact.

    Text is not reformatted: "+1.0" keeps its sign and its decimal. Columns of numbers are right-aligned, except for a
    first column of text, such as "007".
    """
    from tabulate import tabulate

    if isinstance(rows, dict):
        return tabulate([(name, _in_words(value)) for name, value in rows.items()], "", "plain", disable_numparse=True)
    cells = [
        {escaped(key): escaped(cell) if isinstance(cell, str) else cell for key, cell in row.items()} for row in rows
    ]
    columns = [[row.get(key) for row in cells] for key in (cells[0] if cells else ())]
    text = [place for place, column in enumerate(columns) if any(isinstance(cell, str) for cell in column)]
    align = ["global"] * len(columns)
    for place in text:
        numbers = all(NUMBER.fullmatch(str(cell)) for cell in columns[place] if cell not in (None, ""))
        align[place] = "right" if place and numbers else "left"
    return tabulate(cells, headers="keys", intfmt=",", disable_numparse=text, colalign=align)


def _in_words(value: Any) -> str:
    """Return the value of a fact as text. If any text of a list is long, each text has its own line."""
    if isinstance(value, dict):
        value = [f"{key} {part:,}" if isinstance(part, int) else f"{key} {part}" for key, part in value.items()]
        value = ", ".join(value)
    elif isinstance(value, list | tuple):
        value = ("\n" if any(len(part) > 30 for part in value) else ", ").join(value)
    return "\n".join(map(escaped, str(value).splitlines()))
