"""Download the archive of a card with pooch, verify it, and unpack it."""

import logging
import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pointset.data.catalogue.cards import Card, Download, file_digest, load_card
from pointset.data.catalogue.locate import home, locate_data, make_folder, present_folder
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.runs.atomic import full_disk_reported
from pointset.runs.files import require_unpackable
from pointset.runs.locks import locked
from pointset.runs.progress import progress_bar

TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""
RETRIES = 3
"""Further attempts at each mirror after a lost connection or a wrong checksum."""
METADATA = "__MACOSX"
"""A folder that macOS adds to archives."""


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless it is present, and return its folder.

    A second process that fetches the same data waits for the first. An archive saved by the user at the path named in
    the message of a failed download is verified, unpacked and kept.
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
    if not is_saved:
        download(card.urls, archive, card.download, progress=progress)
    elif fault := _fault(archive, card.download):
        raise PointsetError(f"{archive} is not the archive of {card.name}: {fault}: delete it or get it again")
    unpack(archive, parent / card.folder)
    if not is_saved:
        archive.unlink()


def download(urls: Sequence[str], target: Path, expected: Download, *, progress: bool = True) -> Path:
    """Download a file from the first mirror that delivers the expected one.

    Raises:
        PointsetError: no mirror delivers it (with the reason for each), or the disk is full or read-only.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    checksum = next((f"{kind}:{value}" for kind in ("sha256", "md5") if (value := getattr(expected, kind))), None)
    reasons, part = [], target.with_name(f".{target.name}.part")  # a folder
    shutil.rmtree(part, ignore_errors=True)  # of an interrupted download
    for url in urls:
        registry = pooch.create(part, "", registry={target.name: checksum}, retry_if_failed=RETRIES)
        registry.urls = {target.name: url}
        with (
            full_disk_reported(target),
            progress_bar(target.name, "B", expected.size or 1, show=progress, scaled=True) as bar,
        ):
            try:
                registry.fetch(target.name, downloader=pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT))
            except (requests.RequestException, ValueError) as error:  # pooch raises ValueError for a wrong checksum
                reasons.append(f"{url}: {one_line(error, REPEATED)}")
                continue
        if not (fault := _fault(part / target.name, Download(size=expected.size))):
            (part / target.name).replace(target)
            part.rmdir()
            return target
        reasons.append(f"{url}: {fault}")
        (part / target.name).unlink()
    shutil.rmtree(part, ignore_errors=True)
    raise PointsetError(
        f"{target.name} could not be downloaded ({'; '.join(reasons)}): run the same command again, or get the file in "
        f"another way and save it as {target}"
    )


def _fault(path: Path, expected: Download) -> str:
    """Return how a file differs from the expected size and digests, or ""."""
    size = path.stat().st_size
    if expected.size not in (None, size):
        return f"it has {size:,} bytes instead of {expected.size:,}"
    for kind in ("sha256", "md5"):
        digest = getattr(expected, kind)
        if digest is not None and file_digest(path, kind) != digest:
            return f"its {kind.upper()} is not the expected one"
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
    """Return the folder `name` in the unpacked archive, or the archive itself if it has only files."""
    shutil.rmtree(root / METADATA, ignore_errors=True)
    tops = sorted(root.iterdir()) if root.is_dir() else []
    if tops and not any(path.is_dir() for path in tops):
        return root
    folders = [root / name] if (root / name).is_dir() else [path for path in root.rglob(name) if path.is_dir()]
    if len(folders) != 1:
        content = one_line(", ".join(path.name for path in tops), REPEATED)
        raise PointsetError(f"{archive} must have one folder {name}, got {len(folders)}, in {content or 'nothing'}")
    return folders[0]
