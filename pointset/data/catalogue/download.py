"""Download, check and unpack the data of a card; pooch, the usual library, cannot resume an interrupted download."""

import hashlib
import shutil
import tarfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pointset.data.catalogue.cards import Card, Download, file_digest, load_card
from pointset.data.catalogue.locate import datasets_home, locate_data, make_folder, present_folder
from pointset.errors import QUOTED, REPEATED, PointsetError, one_line
from pointset.runs.atomic import full_disk_reported
from pointset.runs.locks import locked
from pointset.runs.progress import followed, progress_bar

if TYPE_CHECKING:
    from requests import Response

BLOCK = 1 << 20
TRIES = 5
"""Number of consecutive connections without a byte received after which a mirror is given up."""
TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""
SMALL, MOST_RATIO = 1 << 26, 100
"""Bytes that any archive may unpack to, and unpacked bytes per packed byte of larger ones; text of meshes has 10."""
METADATA = "__MACOSX"
"""A folder that macOS adds to archives."""


class MirrorError(Exception):
    """A mirror did not deliver the file; the message is a short reason."""


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless it is present; an interrupted download is resumed.

    A second process that fetches the same data waits for the first. An archive that the user saved at the path named
    in the message of a failed download is unpacked and kept. Returns the folder with the data.
    """
    card = load_card(name)
    if card.urls and present_folder(card) is None:  # checked before locking, because the home may be read-only
        parent = make_folder(datasets_home())
        with locked(parent / f".{card.name}.lock"):
            if present_folder(card) is None:
                _fetch(card, parent, progress)
    return locate_data(name, progress=progress)[1]


def _fetch(card: Card, parent: Path, progress: bool) -> None:
    archive = parent / PurePosixPath(urlsplit(card.urls[0]).path).name
    is_saved = archive.is_file()
    if is_saved and (fault := _fault(archive, card.download)):
        raise PointsetError(f"{archive} is not the archive of {card.name}: {fault}: delete it or get it again")
    whole = archive if is_saved else download(card.urls, archive, card.download, progress=progress)
    unpack(whole, parent / card.folder, progress=progress)
    if not is_saved:
        whole.unlink()


def download(
    urls: Sequence[str], target: Path, expected: Download, *, progress: bool = True, pause: float = 1.0
) -> Path:
    """Download a file from the first mirror that has it, and check it.

    It is written to a hidden file next to `target`, one for each mirror, from which the next call goes on if the server
    supports it. That the file has not changed since is seen by its digest or, in an archive, by those of its files.

    Args:
        urls: mirrors of the same file, tried in order.
        target: where the user may save the file.
        expected: known size and digests.
        progress: show a bar, or lines if the output is not a terminal.
        pause: seconds before the first retry after a cut connection; doubled before each further retry.

    Returns:
        Path of the complete, verified file.

    Raises:
        PointsetError: no mirror delivered the right file (with a reason for each), or the disk is full or read-only.
    """
    reasons = []
    with full_disk_reported(target):
        for url in urls:
            part = target.with_name(f".{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")
            try:
                _receive_whole(url, part, expected, progress, pause)
            except MirrorError as error:
                reasons.append(f"{url}: {error}")
                continue
            if fault := _fault(part, expected):
                part.unlink()
                reasons.append(f"{url}: {fault}")
                continue
            for left in target.parent.glob(f".{target.name}.????????.part"):
                if left != part:
                    left.unlink()
            return part
    raise PointsetError(
        f"{target.name} could not be downloaded ({'; '.join(reasons)}): run the same command again to go on, or get "
        f"the file in another way and save it as {target}"
    )


def _fault(path: Path, expected: Download) -> str:
    """How a file differs from the expected size and digests; "" if it does not."""
    size = path.stat().st_size
    if expected.size not in (None, size):
        return f"it has {size:,} bytes instead of {expected.size:,}"
    for kind in ("sha256", "md5"):
        digest = getattr(expected, kind)
        if digest is not None and file_digest(path, kind) != digest:
            return f"its {kind.upper()} is not the expected one"
    return ""


def _receive_whole(url: str, part: Path, expected: Download, progress: bool, pause: float) -> None:
    """Receive a file over several connections; give up after `TRIES` connections in a row without a byte."""
    idle, before = 0, _size(part)
    while cut := _receive(url, part, expected, progress):
        idle = 0 if _size(part) > before else idle + 1
        before = _size(part)
        if idle == TRIES:
            raise MirrorError(f"the connection was cut {TRIES} times in a row ({cut})")
        if idle:
            time.sleep(pause * 2 ** (idle - 1))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _receive(url: str, part: Path, expected: Download, progress: bool) -> str:
    """Receive what is missing of a file over one connection; return why it was cut, or "" if the file is whole."""
    import requests
    import urllib3

    done = _size(part)
    if done and done == expected.size:
        return ""
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
            _check(response, expected)
            continues = response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
            if not done and response.status_code == 206:
                raise MirrorError("the server sent a part of the file, which was not asked for")
            if done and not (response.status_code == 206 and continues):
                part.unlink()
                done = 0
                if response.status_code != 200:
                    return "the server sent a different byte range than requested"
            return _append(response, part, done, expected, progress)
    except urllib3.exceptions.HTTPError as error:
        return _inner_message(error)
    except requests.exceptions.RequestException as error:
        cuts = (requests.exceptions.ReadTimeout, *([requests.exceptions.ConnectionError] if done else []))
        if isinstance(error, cuts):
            return _inner_message(error)
        raise MirrorError(f"no connection ({_inner_message(error)})") from error


def _check(response: "Response", expected: Download) -> None:
    """Raise a MirrorError for an answer that is not the file."""
    if response.status_code not in (200, 206, 416):
        raise MirrorError(f"the server answered {response.status_code} {one_line(response.reason, QUOTED)}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise MirrorError("the server sent a web page instead of the file")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity" and expected.sha256 is None and expected.md5 is None:  # else the digest decides
        raise MirrorError(f"the server sent the file packed as {one_line(encoding, QUOTED)}, which was not asked for")


def _append(response: "Response", part: Path, done: int, expected: Download, progress: bool) -> str:
    """Append the received bytes; return as `_receive`."""
    length = response.headers.get("Content-Length", "")
    total = done + int(length) if length.isdecimal() and len(length) < 19 else expected.size
    if expected.size not in (None, total):
        raise MirrorError(f"it has {total:,} bytes instead of {expected.size:,}")
    name = part.name[1:].rsplit(".", 2)[0]
    with part.open("ab") as file, progress_bar(name, "B", total, show=progress, done=done, scaled=True) as bar:
        # read1 returns what has arrived; waiting for a full block would lose its bytes if the connection is cut.
        while block := response.raw.read1(BLOCK):
            done += len(block)
            if total is not None and done > total:
                raise MirrorError(f"the server sent more than {total:,} bytes")
            file.write(block)
            bar.update(len(block))
    return "" if total in (None, done) else f"{done:,} of {total:,} bytes were received"


def _inner_message(error: BaseException) -> str:
    """The message of the innermost cause of an error; messages of outer errors hold addresses of objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return one_line(error, REPEATED) or type(error).__name__


def unpack(archive: Path, folder: Path, *, progress: bool = True) -> None:
    """Unpack one folder of an archive, or the whole archive if it has only files at the top: all of it, or nothing.

    The files are unpacked to a temporary folder, which is renamed when it is complete; the next call removes the
    leftovers of an interrupted one. Nothing is written outside of it: Python's filter "data" for tar files refuses
    links to other folders and devices; in zip files, parent folders and drives in names are ignored.

    Args:
        archive: a zip file, or a tar file with any compression.
        folder: the target; the archive's folder of the same name, at any depth, is moved there.
        progress: show a bar, or lines if the output is not a terminal.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with full_disk_reported(folder):
            extract = _extract_zip if zipfile.is_zipfile(archive) else _extract_tar
            extract(archive, temporary, progress)
            _named(folder.name, temporary, archive).rename(folder)
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
        _require_size(sum(entry.file_size for entry in entries), archive)
        for entry in followed(entries, "unpacking", "file", len(entries), show=progress):
            content.extract(entry, target)


def _require_size(size: int, archive: Path) -> None:
    """Refuse an archive that would fill the disk with what packs extremely well, such as zeros."""
    if size > max(SMALL, MOST_RATIO * archive.stat().st_size):
        packed = archive.stat().st_size
        raise PointsetError(f"{archive} has {packed:,} bytes and unpacks to {size:,} or more: get it from its source")


def _extract_tar(archive: Path, target: Path, progress: bool) -> None:
    with tarfile.open(archive) as content:
        size = 0
        for entry in followed(content, "unpacking", "file", show=progress):
            size += entry.size
            _require_size(size, archive)
            content.extract(entry, target, filter="data")
        # Zeros follow the last entry; `tarfile` also takes a damaged name or the end of the file for its end.
        stream = cast(IO[bytes], content.fileobj)
        stream.seek(content.offset)
        end = stream.read(BLOCK)
        if not end or any(end):
            raise tarfile.ReadError("it is damaged, or cut off")


def _named(name: str, root: Path, archive: Path) -> Path:
    """The folder `name` in the unpacked archive, or the archive itself if it has only files."""
    shutil.rmtree(root / METADATA, ignore_errors=True)
    tops = sorted(root.iterdir()) if root.is_dir() else []
    if tops and not any(path.is_dir() for path in tops):
        return root
    folders = [root / name] if (root / name).is_dir() else [path for path in root.rglob(name) if path.is_dir()]
    if len(folders) != 1:
        content = one_line(", ".join(path.name for path in tops), REPEATED)
        raise PointsetError(f"{archive} must have one folder {name}, got {len(folders)}, in {content or 'nothing'}")
    return folders[0]
