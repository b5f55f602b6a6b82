"""Download the archive of a card with pooch, and unpack it."""

import logging
import shutil
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pointset.data.catalogue.cards import Card, load_card
from pointset.data.catalogue.locate import home, locate_data, make_folder, present_folder
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.runs.atomic import full_disk_reported, locked
from pointset.runs.files import require_unpackable
from pointset.runs.progress import progress_bar

TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""
RETRIES = 3
"""Further attempts at each mirror after a lost connection or a wrong checksum."""


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless the data is present, and return the data folder.

    A second process that fetches the same data waits for the first. An archive that the user has saved in the folder
    `datasets` (the message of a failed download gives the path) is used if its checksum is right, and is not deleted.
    """
    card = load_card(name)
    if card.urls and present_folder(card) is None:  # checked before locking, because `home()` may be read-only
        parent = make_folder(home() / "datasets")
        archive = parent / PurePosixPath(urlsplit(card.urls[0]).path).name
        with locked(parent / f".{card.name}.lock"):
            if present_folder(card) is None:
                is_saved = archive.is_file()
                unpack(download(card, archive, progress=progress), parent / card.folder)
                if not is_saved:
                    archive.unlink()
    return locate_data(name, progress=progress)[1]


def download(card: Card, archive: Path, *, progress: bool = True) -> Path:
    """Download an archive from the first mirror that delivers it, unless the file exists with the right checksum.

    Raises:
        PointsetError: no mirror delivers it (with the reason for each), or the disk is full or read-only.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)
    expected, reasons = card.download, list[str]()
    checksum = next((f"{kind}:{value}" for kind in ("sha256", "md5") if (value := getattr(expected, kind))), None)
    for url in card.urls:
        mirror = pooch.create(
            archive.parent, "", registry={archive.name: checksum}, urls={archive.name: url}, retry_if_failed=RETRIES
        )
        bar = progress_bar(archive.name, "B", expected.size or 1, show=progress, scaled=True)
        with full_disk_reported(archive), bar:
            try:
                mirror.fetch(archive.name, downloader=pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT))
                return archive
            except (requests.RequestException, ValueError) as error:  # pooch raises ValueError for a wrong checksum
                reasons.append(f"{url}: {one_line(error, REPEATED)}")
    raise PointsetError(
        f"{archive.name} could not be downloaded ({'; '.join(reasons)}): run the same command again, or get the file "
        f"in another way and save it as {archive}"
    )


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive to `folder`. If the archive has a folder of this name, only that folder is unpacked.

    After an error, no file is left. zipfile and tarfile refuse or ignore device files, and paths and links that point
    outside the folder.
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
            shutil.rmtree(temporary / "__MACOSX", ignore_errors=True)  # added by macOS
            found = sorted(path for path in temporary.rglob(folder.name) if path.is_dir())
            min(found, key=lambda path: len(path.parts), default=temporary).rename(folder)
    except PointsetError:
        raise
    except Exception as error:  # damage makes the libraries raise many kinds of errors
        fault = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{archive} cannot be unpacked ({fault}): delete it and fetch it again") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
