"""Download, check and unpack the data of a card; pooch, the usual library, cannot resume a download of gigabytes."""

import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import requests

from pointset.data.catalogue.cards import Card, Download, file_digest, load_card
from pointset.data.catalogue.locate import home, locate_data, make_folder, present_folder
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.runs.atomic import full_disk_reported
from pointset.runs.files import require_unpackable
from pointset.runs.locks import locked
from pointset.runs.progress import progress_bar

BLOCK = 1 << 16
TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""
METADATA = "__MACOSX"
"""A folder that macOS adds to archives."""


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless it is present; an interrupted download is resumed.

    A second process that fetches the same data waits for the first. An archive that the user saved at the path named
    in the message of a failed download is unpacked and kept. Returns the folder with the data.
    """
    card = load_card(name)
    if card.urls and present_folder(card) is None:  # checked before locking, because the home may be read-only
        parent = make_folder(home() / "datasets")
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
    unpack(whole, parent / card.folder)
    if not is_saved:
        whole.unlink()


def download(urls: Sequence[str], target: Path, expected: Download, *, progress: bool = True) -> Path:
    """Download a file from the first mirror that has the one which is expected, to a hidden file next to `target`.

    The next call continues it if the server supports that. A PointsetError if no mirror delivers the right file (with a
    reason for each), or the disk is full or read-only.
    """
    part, reasons = target.with_name(f".{target.name}.part"), []
    with full_disk_reported(target):
        for url in urls:
            fault = _receive_whole(url, part, expected, progress)
            if not fault and (fault := _fault(part, expected)):
                part.unlink()
            if not fault:
                return part
            reasons.append(f"{url}: {fault}")
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


def _receive_whole(url: str, part: Path, expected: Download, progress: bool) -> str:
    """Receive a file over as many connections as bring bytes; return why it is not whole, or ""."""
    while (before := _size(part)) != expected.size or not before:
        try:
            return _receive(url, part, before, expected, progress)
        except requests.exceptions.RequestException as error:
            if _size(part) <= before:
                return one_line(error, REPEATED)
    return ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _receive(url: str, part: Path, done: int, expected: Download, progress: bool) -> str:
    """Receive what is missing over one connection; return the fault of an answer that is not the file, or ""."""
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={done}-"} if done else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == 416:  # the part does not begin this file
            part.unlink()
        response.raise_for_status()
        if response.headers.get("Content-Type", "").startswith("text/html"):
            return "the server sent a web page instead of the file"
        if response.status_code != 206:
            done = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            part.unlink(missing_ok=True)
            return "the server sent another part of the file than was asked for"
        with (
            part.open("ab" if done else "wb") as file,
            progress_bar(part.name[1:-5], "B", expected.size, show=progress, done=done, scaled=True) as bar,
        ):
            for block in response.iter_content(BLOCK):
                file.write(block)
                bar.update(len(block))
    return ""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack one folder of an archive, or the whole archive if it has only files at the top: all of it, or nothing.

    The files are unpacked to a temporary folder, which is renamed when it is complete. Nothing is written outside of
    it: the libraries refuse or ignore parent folders and drives in names, and links to other folders and devices.
    The archive's folder with the name of the target `folder`, at any depth, is moved there.
    """
    temporary = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with full_disk_reported(folder):
            if zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive) as content:
                    require_unpackable(archive, sum(entry.file_size for entry in content.infolist()))
                    content.extractall(temporary)
            else:
                with tarfile.open(archive) as packed:
                    require_unpackable(archive, sum(entry.size for entry in packed))
                    packed.extractall(temporary, filter="data")
            _named(folder.name, temporary, archive).rename(folder)
    except PointsetError:
        raise
    except Exception as error:  # damage makes the libraries raise many kinds of errors
        fault = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{archive} cannot be unpacked ({fault}): delete it and fetch it again") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
