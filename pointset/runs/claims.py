"""A folder belongs to what its description says: the same work goes on in it, other work is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pointset.errors import PointsetError, quoted
from pointset.runs.atomic import read_json, write_json


def claim(file: Path, description: dict[str, Any], parts: Sequence[str], what: str) -> None:
    """Write a description, or check that the one there agrees in the parts that decide the results.

    Args:
        file: where the description is, or goes.
        description: of the work about to be done in the file's folder; plain data.
        parts: keys of the description that must agree; the others, such as versions, are for the record.
        what: what the folder holds, in a word: "run".

    Raises:
        PointsetError: the folder holds other work; the first difference is named.
    """
    if file.exists():
        check_claim(file, description, parts, what)
    else:
        write_json(file, _as_json(description))


def check_claim(file: Path, description: dict[str, Any], parts: Sequence[str], what: str) -> None:
    """The check of `claim` alone: a folder without a description passes, and stays as it is."""
    if not file.exists():
        return
    mine, theirs = _as_json(description), read_json(file)
    for part in parts:
        if theirs.get(part) != mine.get(part):
            difference = _first_difference(theirs.get(part), mine.get(part), part)
            raise PointsetError(f"{file.parent} holds another {what} ({difference}): give another folder or delete it")


def _as_json(description: dict[str, Any]) -> Any:
    """As JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(description))


def _first_difference(theirs: Any, mine: Any, where: str) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in [*theirs, *mine]:
            if theirs.get(key) != mine.get(key):
                return _first_difference(theirs.get(key), mine.get(key), f"{where}.{key}")
    return f"{where} is {quoted(theirs)} there and {quoted(mine)} here"
