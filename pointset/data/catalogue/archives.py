"""Unpacking a downloaded archive: whole or not at all, and never outside its folder."""

import errno
import lzma
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal, cast

from tqdm import tqdm

from pointset.data.catalogue.home import disk_errors_told
from pointset.errors import PointsetError

MOST_RATIO = 100
"""Unpacked bytes per packed one: meshes written as text reach 10, an archive made to fill a disk many thousands."""
REMAINDER = "__MACOSX"
"""What macOS adds to archives; nobody's data."""
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    IndexError,  # by zipfile, of a name without letters
    ValueError,  # of a name that is no UTF-8, or that no file can have
)
"""What reading a damaged, cut or encrypted archive raises, beside OSErrors: see `_is_damage`."""
ENTRY = b"PK\x01\x02"
"""How an entry begins in the directory of a zip file."""


@dataclass(frozen=True)
class Entry:
    """One file or folder in an archive."""

    name: str
    """As the archive has it."""
    kind: Literal["file", "folder", "other"]
    size: int
    """Bytes, unpacked."""
    open: Callable[[], IO[bytes]]

    @property
    def path(self) -> PurePosixPath:
        """The name without what says nothing: `a//b` and `./a/b` are `a/b`."""
        return PurePosixPath(self.name)


def unpack(archive: Path, folder: Path, *, progress: bool = True) -> None:
    """Unpack the folder of that name out of an archive, or all of an archive that has its files at the top.

    It is unpacked beside its place and renamed when it is whole: an unpacking that was killed leaves nothing that looks
    finished, and the next one removes what it left.

    Args:
        archive: a zip or tar file, a tar file compressed or not.
        folder: becomes the archive's folder of the same name, which may lie in other folders there.
        progress: show a bar, if the output is a terminal.

    Raises:
        PointsetError: the archive is damaged, has no such folder, or has an entry that no honest archive has; or the
            disk is full. Only a tar file that is not compressed may be damaged without a sign: it keeps no checksums
            of what it holds.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with disk_errors_told(folder.parent), _opened(archive) as entries:
            chosen = _chosen(_checked(entries, archive), archive, folder.name)
            _require_room(chosen.values(), archive, folder.parent)
            for path, entry in tqdm(chosen.items(), desc="unpacking", unit="file", disable=None if progress else True):
                _write(entry, temporary / path)
                _require_size(entry, temporary / path)
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(entry: Entry, path: Path) -> None:
    """Only bytes come out of an archive: no owners, no permissions, no dates."""
    if entry.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with entry.open() as source, path.open("xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


def _require_size(entry: Entry, path: Path) -> None:
    """Checksums are compared by zipfile; that nothing is missing at the end is seen here."""
    if entry.kind == "file" and path.stat().st_size != entry.size:
        raise EOFError(f"{entry.name!r} has {path.stat().st_size:,} bytes instead of {entry.size:,}")


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[Entry]]:
    """The entries of an archive, which can be read inside the block."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as content:
                yield map(_of_zip(content), content.infolist())
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                yield _of_whole(tar)
        else:
            raise tarfile.ReadError("it is no zip or tar archive, or cut off")
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and not _is_damage(error):
            raise
        fault = " ".join(str(error).split()) or type(error).__name__
        raise PointsetError(f"{archive} cannot be unpacked ({fault}): delete it and fetch it again") from error


def _is_damage(error: OSError) -> bool:
    """Whether it tells of the archive, not of the disk: a broken stream, a place before its start, an odd name."""
    return error.errno in (None, errno.EINVAL, errno.ENAMETOOLONG, errno.EILSEQ)


def _of_zip(content: zipfile.ZipFile) -> Callable[[zipfile.ZipInfo], Entry]:
    def entry(info: zipfile.ZipInfo) -> Entry:
        if ENTRY in info.extra + info.comment:  # a damaged length
            raise zipfile.BadZipFile(f"what is said of {info.filename!r} hides other files")
        content.open(info).close()  # fails where the name stands in front of other bytes, of folders and the rest too
        mode = stat.S_IFMT(info.external_attr >> 16)
        plain: Literal["file", "folder"] = "folder" if info.is_dir() else "file"
        kind = plain if mode in (0, stat.S_IFREG, stat.S_IFDIR) else "other"
        return Entry(info.filename, kind, info.file_size, lambda: content.open(info))

    return entry


def _of_tar(content: tarfile.TarFile) -> Callable[[tarfile.TarInfo], Entry]:
    def entry(info: tarfile.TarInfo) -> Entry:
        kind: Literal["file", "folder", "other"] = "folder" if info.isdir() else "file" if info.isreg() else "other"
        return Entry(info.name, kind, info.size, lambda: cast(IO[bytes], content.extractfile(info)))

    return entry


def _of_whole(content: tarfile.TarFile) -> Iterator[Entry]:
    """The entries of a tar file, then the zeros at its end: `tarfile` takes a damaged name for the end too."""
    yield from map(_of_tar(content), content)
    stream = cast(IO[bytes], content.fileobj)
    stream.seek(content.offset)
    end = stream.read(tarfile.BLOCKSIZE)
    while end and not end.strip(b"\0"):
        if not (end := stream.read(1 << 20)):
            return
    raise tarfile.ReadError("it is damaged, or cut off")


def _checked(entries: Iterable[Entry], archive: Path) -> list[Entry]:
    """All entries, each looked at before the next is read: the names of a compressed tar file come with its bytes."""
    seen: dict[PurePosixPath, Entry] = {}
    most, unpacked = MOST_RATIO * archive.stat().st_size, 0
    for entry in entries:
        _require_honest(entry, archive)
        before = seen.get(entry.path)
        if before is not None and "file" in (before.kind, entry.kind):
            raise PointsetError(f"{archive} is not unpacked: it holds {entry.name!r} twice")
        seen[entry.path] = entry
        unpacked += entry.size
        if unpacked > most:
            raise PointsetError(
                f"{archive} is not unpacked: {unpacked:,} bytes in {archive.stat().st_size:,} are more than any "
                "archive of shapes has"
            )
    for entry in seen.values():
        if any(parent in seen and seen[parent].kind == "file" for parent in entry.path.parents):
            raise PointsetError(f"{archive} is not unpacked: {entry.name!r} lies in a file")
    return list(seen.values())


def _require_honest(entry: Entry, archive: Path) -> None:
    """Refuse what would be written elsewhere, or would point elsewhere."""
    path = PurePosixPath(entry.name.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or ":" in entry.name
    if outside or entry.kind == "other":
        kind = "a path outside it" if outside else "a link or device"
        raise PointsetError(f"{archive} is not unpacked: {entry.name!r} is {kind}")


def _chosen(entries: list[Entry], archive: Path, name: str) -> dict[PurePosixPath, Entry]:
    """The entries of the folder `name`, by their path in it."""
    own = [entry for entry in entries if entry.path.parts[:1] != (REMAINDER,) and entry.path.parts]
    if own and all(entry.kind == "file" and len(entry.path.parts) == 1 for entry in own):
        return {entry.path: entry for entry in own}
    places = {entry.path.parts[: entry.path.parts.index(name)] for entry in own if name in entry.path.parts[:-1]}
    if () in places:  # one at the top is the one, whatever lies deeper
        places = {()}
    if len(places) != 1:
        tops = sorted({entry.path.parts[0] for entry in own})
        what = f"{len(places)} folders {name} in it, in" if places else f"no folder {name} in it, only"
        raise PointsetError(f"{archive} has {what} {', '.join(tops) or 'nothing'}")
    root = PurePosixPath(*places.pop(), name)
    return {entry.path.relative_to(root): entry for entry in own if entry.path.is_relative_to(root)}


def _require_room(entries: Iterable[Entry], archive: Path, folder: Path) -> None:
    needed, free = sum(entry.size for entry in entries), shutil.disk_usage(folder).free
    if needed > free:
        raise PointsetError(
            f"{archive} needs {needed:,} bytes in {folder}, which has {free:,}: make room, or set POINTSET_HOME to a "
            "folder on another disk"
        )
