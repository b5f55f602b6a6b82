"""Ownership of folders: one process at a time, and only for the work that the description in the folder names."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pointset.errors import PointsetError, quoted
from pointset.runs import digests
from pointset.runs.atomic import full_disk_reported, sweep

LOCK = ".lock"


@contextmanager
def owned(folder: Path, busy: str, lock: str = LOCK, wait: float = 0.0) -> Iterator[None]:
    """Own a folder inside the block. Create it if needed, and remove the temporary files of killed processes."""
    held = FileLock(folder / lock, timeout=wait)
    with full_disk_reported(folder / lock):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.acquire()
        except Timeout as error:
            raise PointsetError(busy) from error
    try:
        sweep(folder)
        yield
    finally:
        held.release()


def claim(file: Path, description: dict[str, Any], keys: Sequence[str], what: str, *, write: bool = True) -> None:
    """Write the description of the work `what` in a folder, or check that the one there agrees in the given keys."""
    mine = as_saved(description)
    if not file.exists():
        if write:
            digests.write_json(file, mine)
        return
    theirs = digests.read_json(file, f"delete {file.parent} and run the same command again", dict[str, Any])
    for key in keys:
        if theirs.get(key) != mine.get(key):
            difference = _first_difference(theirs.get(key), mine.get(key), key)
            raise PointsetError(f"{file.parent} holds another {what} ({difference}): give another folder or delete it")


def as_saved(description: dict[str, Any]) -> Any:
    """The description after a round trip through JSON: tuples become lists."""
    return json.loads(json.dumps(description))


def _first_difference(theirs: Any, mine: Any, where: str) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in [*theirs, *mine]:
            if theirs.get(key) != mine.get(key):
                return _first_difference(theirs.get(key), mine.get(key), f"{where}.{key}")
    return f"{where} is {quoted(theirs)} there and {quoted(mine)} here"
