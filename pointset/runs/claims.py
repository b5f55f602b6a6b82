"""A folder belongs to one process at a time, and to what its description says: other work in it is refused."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pointset.errors import PointsetError, quoted
from pointset.runs import digests
from pointset.runs.atomic import FULL, full_disk_told, sweep, why_no_folder

LOCK = ".lock"


@contextmanager
def owned(folder: Path, busy: str, lock: str = LOCK, wait: float = 0.0) -> Iterator[None]:
    """Own a folder inside the block: it is made if need be, and what killed processes left half written is removed.

    Args:
        folder: that this process is about to write into.
        busy: the error where another process owns it.
        lock: name of the file that is locked.
        wait: seconds to wait for another process.

    Raises:
        PointsetError: another process owns it, it cannot be made or written to, or its disk is full.
    """
    held = FileLock(folder / lock, timeout=wait)
    with full_disk_told(folder / lock):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.acquire()
        except Timeout as error:
            raise PointsetError(busy) from error
        except OSError as error:
            if error.errno in FULL:
                raise
            reason = why_no_folder(folder, error)
            raise PointsetError(f"{folder} cannot be written to ({reason}): choose another folder") from error
    try:
        sweep(folder)
        yield
    finally:
        held.release()


def claim(file: Path, description: dict[str, Any], parts: Sequence[str], what: str) -> None:
    """Write a description, or check that the one there agrees in the parts that decide the results.

    Args:
        file: where the description is, or goes.
        description: of the work about to be done in the file's folder; plain data.
        parts: keys of the description that must agree; the others, such as versions, are for the record.
        what: what the folder holds, in a word: "run".

    Raises:
        PointsetError: the folder holds other work (the first difference is named), or the description is damaged.
    """
    if file.exists():
        check_claim(file, description, parts, what)
    else:
        digests.write_json(file, plain(description))


def check_claim(file: Path, description: dict[str, Any], parts: Sequence[str], what: str) -> None:
    """The check of `claim` alone: a folder without a description passes, and stays as it is."""
    if not file.exists():
        return
    mine, theirs = plain(description), read_description(file, what)
    for part in parts:
        if theirs.get(part) != mine.get(part):
            difference = _first_difference(theirs.get(part), mine.get(part), part)
            raise PointsetError(f"{file.parent} holds another {what} ({difference}): give another folder or delete it")


def read_description(file: Path, what: str) -> dict[str, Any]:
    """A description that `claim` wrote.

    Raises:
        PointsetError: it is damaged.
    """
    remedy = f"delete {file.parent} and run the same command again"
    found = digests.read_json(file, remedy)
    if not isinstance(found, dict):
        raise PointsetError(f"{file} does not describe a {what}: restore it from a copy, or {remedy}")
    return found


def plain(description: dict[str, Any]) -> Any:
    """A description as JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(description))


def _first_difference(theirs: Any, mine: Any, where: str) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in [*theirs, *mine]:
            if theirs.get(key) != mine.get(key):
                return _first_difference(theirs.get(key), mine.get(key), f"{where}.{key}")
    return f"{where} is {quoted(theirs)} there and {quoted(mine)} here"
