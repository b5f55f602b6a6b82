"""Locks between processes, on one machine or on several that share a disk."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from pointset.errors import PointsetError
from pointset.runs.atomic import full_disk_reported

LOCK = ".lock"


@contextmanager
def locked(file: Path, busy: str = "") -> Iterator[None]:
    """Hold a lock, whose folder is made if needed.

    If another process holds it, raise a PointsetError that says `busy`; without `busy`, wait.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file)
    with full_disk_reported(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = lock.acquire(timeout=0)
        except Timeout as error:
            if busy:
                raise PointsetError(busy) from error
            if sys.stderr.isatty():
                sys.stderr.write(f"another process is creating {file.stem}: waiting for it\n")
            held = lock.acquire()
    with held:
        yield


def lock_folder(folder: Path, busy: str) -> AbstractContextManager[None]:
    """Lock a folder, which is made if needed; see `locked`."""
    return locked(folder / LOCK, busy)
