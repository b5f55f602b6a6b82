"""Files that are complete at every moment: written beside their place, flushed to the disk, renamed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pointset.errors import REPEATED, PointsetError, one_line


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_for_user(path: Path, write: Callable[[Path], object]) -> Path:
    """Write atomically to a path that the user chose.

    Raises:
        PointsetError: the path cannot be written.
    """
    try:
        write_atomically(path, write)
    except OSError as error:
        raise PointsetError(f"{path} cannot be written ({error.strerror or error}): choose another place") from error
    return path


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON; a damaged file is an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PointsetError(
            f"{path} is not valid JSON ({one_line(error, REPEATED)}): restore it or delete its folder"
        ) from error


def sync_folder(folder: Path) -> None:
    """Flush a folder and the files in it: after a power cut, a renamed folder must have its content."""
    for file in folder.iterdir():
        sync(file)
    sync(folder)


def sync(path: Path) -> None:
    """Flush one file, or the list of names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
