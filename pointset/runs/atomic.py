"""Files that are complete at every moment: written beside their place, flushed to the disk, renamed."""

import errno
import glob
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pointset.errors import REPEATED, PointsetError, one_line

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a disk, a quota or a limit that is used up."""
SPARE = 1 << 20
"""Free bytes below which a failure to write that gives no such reason is put down to a full disk."""


class DiskFullError(PointsetError):
    """There is no room for a file; what was there before is as it was."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: readers see the old file or the new one.

    Raises:
        DiskFullError: there is no room for it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with full_disk_told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with full_disk_told(path):  # seen before what was written is removed, which makes room
                write(temporary)
                sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def full_disk_told(path: Path) -> Iterator[None]:
    """Raise a DiskFullError that names `path` where the block fails for want of room.

    Libraries that write files by themselves report a full disk in words of their own (torch's archive: "enforce fail at
    inline_container.cc"; numpy: "100 requested and 7 written"), so the disk is asked, too.
    """
    try:
        yield
    except PointsetError:
        raise
    except Exception as error:
        if reason := _want_of_room(path.parent, error):
            raise DiskFullError(
                f"{path} cannot be written ({reason}): free some disk space and run the same command again"
            ) from error
        raise


def _want_of_room(folder: Path, error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number is not None:
        return os.strerror(number) if number in FULL else ""
    with suppress(OSError):
        return os.strerror(errno.ENOSPC) if shutil.disk_usage(folder).free < SPARE else ""
    return ""


def sweep(folder: Path, name: str = "*") -> None:
    """Remove the temporary files that killed processes left in a folder, or those of one file; living ones' stay."""
    for path in folder.glob(f".{name}.*.tmp"):
        writer = re.fullmatch(r"\..+\.(\d+)\.tmp", path.name)
        if writer and not _lives(int(writer[1])):
            path.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    if os.name != "posix":
        return True  # asking there with `os.kill` would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's; no number of a process
        pass
    return True


def write_for_user(path: Path, write: Callable[[Path], object]) -> Path:
    """Write atomically to a path that the user chose.

    Raises:
        PointsetError: the path cannot be written.
    """
    try:
        sweep(path.parent, glob.escape(path.name))
        write_atomically(path, write)
    except OSError as error:
        raise PointsetError(f"{path} cannot be written ({why_no_file(path, error)}): choose another path") from error
    return path


def check_place(path: Path) -> None:
    """Refuse a path that is a folder, or whose folder is not there, before anything slow is done."""
    if not _is_folder(path.parent):
        reason = file_in_the_way(path.parent) or f"the folder {path.parent} does not exist"
        raise PointsetError(f"{path} cannot be written: {reason}")
    if _is_folder(path):
        raise PointsetError(f"{path} cannot be written: it is a folder")


def why_no_file(path: Path, error: OSError) -> str:
    """What kept the system from writing a file, in words."""
    return "it is a folder" if _is_folder(path) else why_no_folder(path.parent, error)


def why_no_folder(folder: Path, error: OSError) -> str:
    """What kept the system from making a folder, or from writing into it, in words."""
    return file_in_the_way(folder) or error.strerror or str(error)


def file_in_the_way(folder: Path) -> str:
    """A sentence if a folder cannot be made because it, or one of its parents, is a file, else nothing.

    The system's own words for it are "File exists" or "Not a directory", as it may be, and do not say which.
    """
    there = next((one for one in (folder, *folder.parents) if os.path.lexists(one)), None)
    if there is None or there.is_dir():
        return ""
    return f"{there} is {'a file' if there.exists() else 'a broken link'}, not a folder"


def _is_folder(path: Path) -> bool:
    return os.path.lexists(path) and path.is_dir()  # a name that is too long makes `is_dir` fail


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    write_text(path, as_json(value))


def as_json(value: Any) -> str:
    """The JSON that is written: indented, with a newline at its end."""
    return json.dumps(value, indent=2) + "\n"


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
