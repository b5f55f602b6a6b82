"""Files of results: write them atomically, read them with an error for damage, and compare descriptions of runs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.runs.atomic import write_atomically
from pointset.runs.files import read_file

T = TypeVar("T")


class DamagedError(PointsetError):
    """A file is missing, cannot be read, or does not hold what it should.

    Attributes:
        fault: the message without the remedy.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        self.fault = fault
        super().__init__(f"{fault}: restore it from a copy, or {remedy}")


def write(path: Path, content: bytes) -> None:
    """Write a file atomically: if the process is killed, either the old or the complete new file is there."""
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text; see `write`."""
    write(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; see `write`."""
    write(path, as_json(value).encode())


def as_json(value: Any) -> str:
    """Return indented JSON with a newline at the end."""
    return json.dumps(value, indent=2) + "\n"


def read_text(path: Path, remedy: str) -> str:
    """Read the text of a file; see `parse`."""
    return parse(path, bytes.decode, "text", remedy)


def read_json(path: Path, remedy: str, kind: Any = Any) -> Any:
    """Read the content of a JSON file, which must have the type `kind`; see `parse` and `checked_json`."""
    return parse(path, lambda content: checked_json(content, kind), "JSON" if kind is Any else "what it should", remedy)


def checked_json(content: bytes, kind: Any) -> Any:
    """Return plain data from JSON; a ValueError if the data does not fit the type `kind`, such as a TypedDict."""
    value = json.loads(content)
    msgspec.convert(value, kind)
    return value


def parse(path: Path, parser: Callable[[bytes], T], what: str, remedy: str) -> T:
    """Read and parse a file; errors name the file, `what` it should hold, and the `remedy` if there is no backup."""
    try:
        content = read_file(path)
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing", remedy) from error
    except (OSError, PointsetError) as error:
        raise DamagedError(f"{path} cannot be read ({one_line(error, QUOTED)})", remedy) from error
    try:
        return parser(content)
    except PointsetError:
        raise
    except Exception as error:  # torch, numpy and safetensors raise many types of exceptions
        fault = f"{path} does not hold {what} ({one_line(error, QUOTED) or type(error).__name__})"
        raise DamagedError(fault, remedy) from error


def write_or_compare(file: Path, description: dict[str, Any], keys: Sequence[str], what: str) -> None:
    """Write a description, or check that an existing file has the same values of `keys`; `what` is named in errors."""
    mine = json.loads(json.dumps(description))  # tuples become lists
    if not file.exists():
        write_json(file, mine)
        return
    theirs = read_json(file, f"move {file.parent} away and run the same again", dict[str, Any])
    for key in keys:
        if theirs.get(key) != mine.get(key):
            difference = _first_difference(theirs.get(key), mine.get(key), key)
            raise PointsetError(f"{file.parent} holds another {what} ({difference}): give another folder")


def _first_difference(theirs: Any, mine: Any, where: str) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in [*theirs, *mine]:
            if theirs.get(key) != mine.get(key):
                return _first_difference(theirs.get(key), mine.get(key), f"{where}.{key}")
    return f"{where} is {quoted(theirs)} there and {quoted(mine)} here"
