"""Unpack a downloaded archive, completely or not at all, and never outside its folder."""

import errno
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from pointset.data.catalogue.home import disk_errors_reported
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.progress import followed

REMAINDER = "__MACOSX"
"""A folder of metadata that macOS adds to archives."""
ENTRY = b"PK\x01\x02"
"""Signature of an entry in the directory of a zip file; in the text of another entry it is a sign of damage."""


def unpack(
    archive: Path, folder: Path, *, progress: bool = True, look: Callable[[Path], object] = lambda _: None
) -> None:
    """Unpack one folder of an archive, or the whole archive if it has only files at the top.

    The files are unpacked to a temporary folder, which is renamed when it is complete; the next call removes the
    leftovers of an interrupted one. Python's filter "data" for tar files refuses links to other places and devices;
    in zip files, parent folders and drives in names are ignored.

    Args:
        archive: a zip file, or a tar file with any compression.
        folder: the target; the archive's folder of the same name, at any depth, is moved there.
        progress: show a bar, or lines if the output is not a terminal.
        look: called with the unpacked folder before it is renamed.

    Raises:
        PointsetError: the archive is damaged, has no such folder, or has an entry outside it; or the disk is full.
            Damage inside the files of an uncompressed tar file is not detected, because tar has no checksums for them.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    extract = _extract_zip if zipfile.is_zipfile(archive) else _extract_tar
    try:
        with disk_errors_reported(folder.parent):
            extract(archive, temporary, progress)
            unpacked = _named(folder.name, temporary, archive)
            look(unpacked)
            unpacked.rename(folder)
    except PointsetError:
        raise
    except Exception as error:  # damage makes the libraries raise many kinds of errors
        fault = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{archive} cannot be unpacked ({fault}): delete it and fetch it again") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _extract_zip(archive: Path, target: Path, progress: bool) -> None:
    with zipfile.ZipFile(archive) as content:
        entries = content.infolist()
        needed, free = sum(entry.file_size for entry in entries), shutil.disk_usage(target.parent).free
        if needed > free:
            raise OSError(errno.ENOSPC, f"{archive.name} needs {needed:,} bytes there, and {free:,} are free")
        for entry in followed(entries, "unpacking", "file", len(entries), show=progress):
            content.open(entry).close()  # fails if a folder has another name at its bytes; `extract` checks only files
            path = Path(content.extract(entry, target))
            short = path.is_file() and path.stat().st_size != entry.file_size
            if short or ENTRY in entry.extra + entry.comment:
                raise zipfile.BadZipFile(f"the entry of {quoted(entry.filename)} is damaged")


def _extract_tar(archive: Path, target: Path, progress: bool) -> None:
    with tarfile.open(archive) as content:
        for entry in followed(content, "unpacking", "file", show=progress):
            content.extract(entry, target, filter="data")
        # After the last entry there are only zeros; `tarfile` also takes a damaged name for the end.
        stream = cast(IO[bytes], content.fileobj)
        stream.seek(content.offset)
        end = stream.read(1 << 20)
        if not end or any(end):
            raise tarfile.ReadError("it is damaged, or cut off")


def _named(name: str, root: Path, archive: Path) -> Path:
    """The folder `name` in the unpacked archive, or the archive itself if it has only files."""
    shutil.rmtree(root / REMAINDER, ignore_errors=True)
    tops = sorted(root.iterdir()) if root.is_dir() else []
    if tops and not any(path.is_dir() for path in tops):
        return root
    if (root / name).is_dir():  # preferred to deeper folders of the same name
        return root / name
    folders = [path for path in root.rglob(name) if path.is_dir()]
    if len(folders) != 1:
        what = f"{len(folders)} folders {name} in it, in" if folders else f"no folder {name} in it, only"
        content = one_line(", ".join(path.name for path in tops), REPEATED) or "nothing"
        raise PointsetError(f"{archive} has {what} {content}")
    return folders[0]
