"""Unpacking a downloaded archive: whole or not at all, and never outside its folder."""

import shutil
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from pointset.errors import PointsetError

MOST_RATIO = 100
"""Unpacked bytes per packed one: meshes written as text reach 10, an archive made to fill a disk many thousands."""
REMAINDER = "__MACOSX"
"""What macOS adds to archives; nobody's data."""


def unpack(archive: Path, folder: Path, *, progress: bool = True) -> None:
    """Unpack the folder of that name out of a zip archive.

    It is unpacked beside its place and renamed when it is whole: an unpacking that was killed leaves nothing that looks
    finished, and the next one removes what it left.

    Args:
        archive: a .zip file.
        folder: becomes the archive's folder of the same name.
        progress: show a bar, if the output is a terminal.

    Raises:
        PointsetError: the archive is damaged, has no such folder, or has an entry that no honest archive has.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with zipfile.ZipFile(archive) as content:
            entries = _checked(content.infolist(), archive, folder.name)
            _require_room(entries, archive, folder.parent)
            for entry in tqdm(entries, desc="unpacking", unit="file", disable=None if progress else True):
                content.extract(entry, temporary)
        (temporary / folder.name).rename(folder)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise PointsetError(f"{archive} cannot be unpacked ({error}): delete it and fetch it again") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _checked(entries: Sequence[zipfile.ZipInfo], archive: Path, name: str) -> list[zipfile.ZipInfo]:
    """The entries below the folder `name`, once all of the archive has been looked at."""
    seen: set[str] = set()
    for entry in entries:
        _require_honest(entry, archive)
        if entry.filename in seen:
            raise PointsetError(f"{archive} is not unpacked: it holds {entry.filename!r} twice")
        seen.add(entry.filename)
    packed, unpacked = archive.stat().st_size, sum(entry.file_size for entry in entries)
    if unpacked > MOST_RATIO * packed:
        raise PointsetError(
            f"{archive} is not unpacked: {unpacked:,} bytes in {packed:,} are more than any archive of shapes has"
        )
    chosen = [entry for entry in entries if PurePosixPath(entry.filename).parts[:1] == (name,)]
    if not chosen:
        tops = sorted({PurePosixPath(entry.filename).parts[0] for entry in entries} - {REMAINDER})
        raise PointsetError(f"{archive} has no folder {name} in it, only {', '.join(tops) or 'nothing'}")
    return chosen


def _require_honest(entry: zipfile.ZipInfo, archive: Path) -> None:
    """Refuse what would be written elsewhere, or would point elsewhere."""
    path, mode = PurePosixPath(entry.filename.replace("\\", "/")), entry.external_attr >> 16
    outside = path.is_absolute() or ".." in path.parts or ":" in entry.filename or not path.parts
    if outside or (mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and stat.S_IFMT(mode)):
        kind = "a path outside it" if outside else "a link or device"
        raise PointsetError(f"{archive} is not unpacked: {entry.filename!r} is {kind}")


def _require_room(entries: Sequence[zipfile.ZipInfo], archive: Path, folder: Path) -> None:
    needed, free = sum(entry.file_size for entry in entries), shutil.disk_usage(folder).free
    if needed > free:
        raise PointsetError(
            f"{archive} needs {needed:,} bytes in {folder}, which has {free:,}: make room, or set POINTSET_HOME to a "
            "folder on another disk"
        )
