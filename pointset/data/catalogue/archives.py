"""Unpack a downloaded archive, completely or not at all, and never outside its folder."""

import errno
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from pointset.data.catalogue.home import disk_errors_told
from pointset.data.readers import zips
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.progress import followed

REMAINDER = "__MACOSX"
"""A folder of metadata that macOS adds to archives."""
DAMAGE = (*zips.DAMAGE, tarfile.TarError)
"""Errors for damaged, truncated or encrypted archives; for OSErrors see `_is_damage`."""

Members = Iterator[tuple[str, int]]
"""Names and sizes of entries; each is yielded before it is unpacked."""


def unpack(
    archive: Path, folder: Path, *, progress: bool = True, look: Callable[[Path], object] = lambda _: None
) -> None:
    """Unpack one folder of an archive, or the whole archive if it has only files at the top.

    The files are unpacked to a temporary folder, which is renamed when it is complete; the next call removes the
    leftovers of an interrupted one.

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
    most, unpacked = zips.MOST_RATIO * archive.stat().st_size, 0
    try:
        with disk_errors_told(folder.parent), _reporting_damage(archive):
            members = _of_zip(archive, temporary) if zipfile.is_zipfile(archive) else _of_tar(archive, temporary)
            for name, size in followed(members, "unpacking", "file", show=progress):
                path = PurePosixPath(name.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts or ":" in name:
                    raise PointsetError(f"{archive} is not unpacked: {quoted(name)} is a path outside it")
                unpacked += size
                if unpacked > most:
                    raise PointsetError(
                        f"{archive} is not unpacked: {unpacked:,} bytes in {archive.stat().st_size:,} are more than "
                        "any archive of shapes has"
                    )
            found = _find(temporary, folder.name, archive)
            look(found)
            found.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _of_zip(archive: Path, target: Path) -> Members:
    with zipfile.ZipFile(archive) as content:
        needed, free = sum(info.file_size for info in content.infolist()), shutil.disk_usage(target.parent).free
        if needed > free:
            raise OSError(errno.ENOSPC, f"{archive.name} needs {needed:,} bytes there, and {free:,} are free")
        for info in zips.entries(content):
            kind = stat.S_IFMT(info.external_attr >> 16)
            _require_plain(kind in (0, stat.S_IFREG, stat.S_IFDIR), info.filename, archive)
            yield info.filename, info.file_size
            content.open(info).close()  # fails if the local header has another name, for folders too
            written = Path(content.extract(info, target))
            if written.is_file() and written.stat().st_size != info.file_size:
                found = written.stat().st_size
                raise EOFError(f"{quoted(info.filename)} has {found:,} bytes instead of {info.file_size:,}")


def _of_tar(archive: Path, target: Path) -> Members:
    if not tarfile.is_tarfile(archive):
        raise tarfile.ReadError("it is neither a zip nor a tar archive, or cut off")
    with tarfile.open(archive) as content:
        for info in content:
            _require_plain(info.isdir() or info.isreg(), info.name, archive)
            yield info.name, info.size
            content.extract(info, target, filter=_without_metadata)
        _require_end(content)


def _without_metadata(info: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """The tar filter "data", which also drops owners, permissions and dates."""
    safe = tarfile.data_filter(info, path)
    return safe.replace(mode=None, mtime=None, uid=None, gid=None, uname=None, gname=None, deep=False)  # type: ignore[arg-type]


def _require_end(content: tarfile.TarFile) -> None:
    """Require zeros after the last entry, because `tarfile` also takes a damaged name for the end."""
    stream = cast(IO[bytes], content.fileobj)
    stream.seek(content.offset)
    end = stream.read(tarfile.BLOCKSIZE)
    while end and not end.strip(b"\0"):
        if not (end := stream.read(1 << 20)):
            return
    raise tarfile.ReadError("it is damaged, or cut off")


def _require_plain(plain: bool, name: str, archive: Path) -> None:
    if not plain:
        raise PointsetError(f"{archive} is not unpacked: {quoted(name)} is a link or device")


@contextmanager
def _reporting_damage(archive: Path) -> Iterator[None]:
    try:
        yield
    except (*DAMAGE, OSError) as error:
        if isinstance(error, PointsetError) or (isinstance(error, OSError) and not _is_damage(error)):
            raise
        fault = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{archive} cannot be unpacked ({fault}): delete it and fetch it again") from error


def _is_damage(error: OSError) -> bool:
    """True if the archive rather than the disk is at fault: a broken stream, a wrong name, a file as a folder."""
    names = (errno.ENAMETOOLONG, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
    return error.errno in (None, errno.EINVAL, *names)


def _find(root: Path, name: str, archive: Path) -> Path:
    """The folder `name` in the unpacked archive, or the archive itself if it has only files."""
    shutil.rmtree(root / REMAINDER, ignore_errors=True)
    tops = sorted(root.iterdir()) if root.is_dir() else []
    if tops and not any(path.is_dir() for path in tops):
        return root
    if (root / name).is_dir():  # preferred to deeper folders of the same name
        return root / name
    places = [path for path in root.rglob(name) if path.is_dir()]
    if len(places) != 1:
        what = f"{len(places)} folders {name} in it, in" if places else f"no folder {name} in it, only"
        raise PointsetError(
            f"{archive} has {what} {one_line(', '.join(path.name for path in tops), REPEATED) or 'nothing'}"
        )
    return places[0]
