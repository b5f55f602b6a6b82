"""The folders of downloaded data, generated datasets and caches."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pointset.errors import PointsetError
from pointset.runs.atomic import why_not


def home() -> Path:
    """The user's data folder: `POINTSET_HOME`, or `~/.cache/pointset` by default."""
    chosen = os.environ.get("POINTSET_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "pointset"


def datasets_home() -> Path:
    """The folder of all datasets, each in its own folder."""
    return home() / "datasets"


def pools_home() -> Path:
    """The folder of all pools of sampled points."""
    return home() / "pools"


def make_folder(folder: Path) -> Path:
    """Create a folder with its parents, and raise a PointsetError if it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # fails if the folder is read-only, or the disk full
            pass
    except OSError as error:
        reason = why_not(folder / "file", error)
        raise PointsetError(
            f"cannot write to {folder} ({reason}): set POINTSET_HOME to a folder that you may write to"
        ) from error
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder's creation, so that other processes wait for it."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if sys.stderr.isatty():
            sys.stderr.write(f"another process is creating {folder.name}: waiting for it\n")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
