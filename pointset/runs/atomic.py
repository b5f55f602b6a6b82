"""Atomic writes (to a temporary file that is flushed to the disk and renamed), and locks between processes."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pointset.errors import PointsetError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors for a full disk, an exhausted quota, and a file size limit."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` write a temporary file, then rename this to `path`: readers see the old or the complete new file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with full_disk_reported(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            sync(temporary)
            temporary.replace(path)
    except OSError as error:
        if error.filename == str(temporary):  # name the user's file, not the temporary one
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink()  # frees space if the disk is full
    return path


@contextmanager
def full_disk_reported(path: Path) -> Iterator[None]:
    """Raise a PointsetError that names `path` if the block fails because the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise PointsetError(
            f"{path} cannot be written ({error.strerror}): free some disk space and run the same command again"
        ) from error


def check_writable(path: Path) -> None:
    """Raise a PointsetError if a path is a folder, or its folder does not exist. Called before slow work starts."""
    missing = FileNotFoundError(errno.ENOENT, f"the folder {path.parent} does not exist")
    if _is_folder(path) or not _is_folder(path.parent):
        raise PointsetError(f"{path} cannot be written: {why_not(path, missing)}")


def check_folder_path(path: Path) -> None:
    """Raise a PointsetError if a path is not a folder and cannot become one. Called before slow work starts."""
    above = next(folder for folder in (path.absolute(), *path.absolute().parents) if os.path.lexists(folder))
    if not above.is_dir():
        raise PointsetError(f"{path} cannot be used ({above} is a file, not a folder): use another path")
    if not os.access(above, os.W_OK):
        raise PointsetError(f"{path} cannot be used (no permission to write in {above}): use another path")


def checked_suffix(path: str | Path, suffixes: Sequence[str], what: str) -> Path:
    """Return the path; raise a PointsetError if it has none of the suffixes."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise PointsetError(f"{path}: the name of {what} must end in {' or '.join(suffixes)}")
    return path


def why_not(path: Path, error: OSError) -> str:
    """Return the reason why a file could not be written, for a message.

    The system's messages ("File exists", "Not a directory") do not name the file that is where a folder should be.
    """
    if _is_folder(path):
        return "it is a folder"
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if above.is_dir():
        return error.strerror or str(error)
    return f"{above} is {'a file' if above.exists() else 'a broken link'}, not a folder"


def _is_folder(path: Path) -> bool:
    return os.path.lexists(path) and path.is_dir()  # `is_dir` raises for a name that is too long


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; at the end, flush its top-level files to the disk and rename it to `folder`.

    If the block fails or is killed, `folder` does not exist.
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process
    try:
        with full_disk_reported(folder):
            temporary.mkdir(parents=True)
            yield temporary
            for path in (*temporary.iterdir(), temporary):
                sync(path)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # frees space if the disk is full


def sync(path: Path) -> None:
    """Flush one file, or the directory entry of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(file: Path, busy: str = "") -> Iterator[None]:
    """Hold a lock on `file` inside this block; the folder of the file is created if needed.

    If another process holds the lock, raise a PointsetError with the text `busy`, or wait if `busy` is empty.
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
