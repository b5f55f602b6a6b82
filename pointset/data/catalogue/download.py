"""Download and unpack the data of a card; interrupted downloads are resumed, which pooch, the usual library, cannot."""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pointset.data.catalogue.archives import unpack
from pointset.data.catalogue.cards import Card, Download, load_card
from pointset.data.catalogue.checksums import file_digest, note_files
from pointset.data.catalogue.home import datasets_home, disk_errors_reported, locked, make_folder
from pointset.data.catalogue.locate import locate_data, present_folder
from pointset.errors import QUOTED, REPEATED, PointsetError, one_line, quoted
from pointset.runs.atomic import read_json, write_json
from pointset.runs.progress import progress_bar

if TYPE_CHECKING:
    from requests import Response

BLOCK = 1 << 20
TRIES = 5
"""Number of consecutive connections without a byte received after which a mirror is given up."""
TIMEOUT = (15, 60)
"""Seconds to wait for a connection, and for the next bytes."""


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless it is present; an interrupted download is resumed.

    A second process that fetches the same data waits for the first. An archive that the user saved at the place named
    in the message of a failed download is unpacked and kept.

    Returns:
        The folder with the data.

    Raises:
        PointsetError: the card is unknown or has no URL, or the data cannot be downloaded or unpacked; the message
            says where to save the file by hand.
    """
    card = load_card(name)
    if card.kind == "generated":
        return locate_data(name, progress=progress)[1]
    there = present_folder(card)
    if there is not None:  # checked before locking, because the home may be read-only
        return there
    parent = make_folder(datasets_home())
    with locked(parent / f".{card.name}"):
        return present_folder(card) or _fetch(card, parent, progress)


def _fetch(card: Card, parent: Path, progress: bool) -> Path:
    if not card.urls:
        raise PointsetError(
            f"{card.name} cannot be downloaded automatically: {card.instructions}, so that it makes "
            f"{parent / card.folder}"
        )
    archive, folder = parent / PurePosixPath(urlsplit(card.urls[0]).path).name, parent / card.folder
    ours = parent / f".{archive.name}.downloaded"  # marks an archive that was not saved by hand, even after a kill
    if not archive.is_file():
        ours.unlink(missing_ok=True)
        download(card.urls, archive, card.download, progress=progress, mark=ours)
    elif fault := _fault(archive, card.download):
        raise PointsetError(f"{archive} is not the archive of {card.name}: {fault}: delete it or get it again")
    whole = card.download.md5 or card.download.sha256
    noted = card.kind != "meshes" and whole  # for meshes, the pools sampled from them record digests
    unpack(archive, folder, progress=progress, look=lambda unpacked: note_files(unpacked, folder) if noted else None)
    if ours.exists():
        archive.unlink()
        ours.unlink()
    return folder


def download(
    urls: Sequence[str],
    target: Path,
    expected: Download,
    *,
    progress: bool = True,
    pause: float = 1.0,
    mark: Path | None = None,
) -> None:
    """Download a file.

    Bytes received from a mirror are kept next to `target`; the next call resumes there, if the server supports it and
    the file has not changed.

    Args:
        urls: mirrors of the same file, tried in order.
        target: path of the complete, verified file.
        expected: known size and digests.
        progress: show a bar, or lines if the output is not a terminal.
        pause: seconds before the first retry after a cut connection; doubled before each further retry.
        mark: empty file that is created just before `target`, to distinguish it from a file that was saved by hand.

    Raises:
        PointsetError: no mirror delivered the right file (with a reason for each), or the disk is full or read-only.
    """
    reasons = []
    with disk_errors_reported(target.parent):
        for url in urls:
            part = Part(target, url)
            try:
                _receive_whole(url, part, expected, progress, pause)
                if fault := _fault(part.path, expected):
                    part.clear()
                    raise MirrorError(fault)
            except MirrorError as error:
                reasons.append(f"{url}: {error}")
                continue
            if mark is not None:
                mark.touch()
            part.finish()
            return
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
        if getattr(expected, kind) not in (None, file_digest(path, kind)):
            return f"its {kind.upper()} is not the expected one"
    return ""


class MirrorError(Exception):
    """A mirror did not deliver the file; the message is a short reason."""


class ConnectionCutError(Exception):
    """The connection ended before the end of the file."""


class Part:
    """The bytes received from one mirror, and a note with the version of the file that they belong to.

    Attributes:
        validator: the server's ETag or date of the version; without one, downloads are not resumed.
        total: size of the whole file in bytes, if the server sends it.
    """

    def __init__(self, target: Path, url: str) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}.part")
        self.note = self.path.with_suffix(".json")
        try:
            self.validator, self.total = read_json(self.note)
        except (OSError, PointsetError, ValueError, TypeError):  # missing or damaged
            self.clear()

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def clear(self) -> None:
        """Discard the received bytes."""
        self.validator, self.total = None, None
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def headers(self) -> dict[str, str]:
        """Headers of a request for the remaining bytes."""
        rest = {"Range": f"bytes={self.size}-", "If-Range": self.validator} if self.size and self.validator else {}
        return {"Accept-Encoding": "identity", **rest}

    def begin(self, response: "Response", expected: Download) -> None:
        """Check a response and note its version; a response with the whole file discards the bytes received so far."""
        resumes, length = response.status_code == 206, response.headers.get("Content-Length")
        validator = _validator(response) or (self.validator if resumes else None)
        sent = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""), re.ASCII)
        fits = sent is not None and int(sent[1]) == self.size > 0 and validator == self.validator
        if response.status_code == 416 or (resumes and not fits):
            self.clear()
            raise ConnectionCutError("the server sent a different byte range than requested")
        if response.status_code not in (200, 206):
            raise MirrorError(f"the server answered {response.status_code} {one_line(response.reason, QUOTED)}")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise MirrorError("the server sent a web page instead of the file")
        if (coding := response.headers.get("Content-Encoding", "identity")) != "identity":
            raise MirrorError(f"the server sent it compressed ({quoted(coding)}), which was not requested")
        if length is not None and not re.fullmatch(r"\d{1,18}", length, re.ASCII):
            raise MirrorError(f"its Content-Length is {quoted(length)}, which is not a number of bytes")
        if not resumes:
            self.clear()
        self.validator, self.total = validator, None if length is None else int(length) + self.size
        if sent is not None and sent[2] != "*":
            self.total = int(sent[2])
        if self.total is not None and expected.size not in (None, self.total):
            raise MirrorError(f"it has {self.total:,} bytes instead of {expected.size:,}")
        write_json(self.note, [self.validator, self.total])

    def append(self, response: "Response", most: int | None, progress: bool) -> None:
        """Append the received bytes; fail if there are more than `most`."""
        size = self.size
        with (
            self.path.open("ab") as file,
            progress_bar(self.target.name, "B", self.total, show=progress, done=size, scaled=True) as bar,
        ):
            # read1 returns what has arrived; waiting for a full block would lose its bytes if the connection is cut.
            while block := response.raw.read1(BLOCK):
                size += len(block)
                if most is not None and size > most:
                    self.clear()
                    raise MirrorError(f"the server sent more than {most:,} bytes")
                file.write(block)
                bar.update(len(block))
        if self.total not in (None, size):
            raise ConnectionCutError(f"{size:,} of {self.total:,} bytes were received")

    def finish(self) -> None:
        """Rename the complete file to its target, and remove parts from other mirrors."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        for left in self.target.parent.glob(f"{self.target.name}.????????.*"):
            left.unlink()


def _validator(response: "Response") -> str | None:
    """The version of a file: its strong ETag, else its modification date."""
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _receive_whole(url: str, part: Part, expected: Download, progress: bool, pause: float) -> None:
    """Receive a file over several connections; give up after `TRIES` connections in a row without a byte."""
    idle = 0
    while part.total is None or part.size != part.total:
        before = part.size
        try:
            _receive(url, part, expected, progress)
            return
        except ConnectionCutError as error:
            idle = 0 if part.size > before else idle + 1
            if idle == TRIES:
                raise MirrorError(f"the connection was cut {TRIES} times in a row ({error})") from error
            if idle:
                time.sleep(pause * 2 ** (idle - 1))


def _receive(url: str, part: Part, expected: Download, progress: bool) -> None:
    import requests
    import urllib3

    try:
        with requests.get(url, headers=part.headers(), stream=True, timeout=TIMEOUT) as response:
            part.begin(response, expected)
            part.append(response, expected.size if part.total is None else part.total, progress)
    except (urllib3.exceptions.HTTPError, requests.exceptions.ReadTimeout) as error:
        raise ConnectionCutError(_inner_message(error)) from error
    except requests.exceptions.RequestException as error:
        reason = _inner_message(error)
        if isinstance(error, requests.exceptions.SSLError):
            reason = (
                f"the server's certificate was refused ({reason}): check this machine's clock, or name your network's "
                "certificates in REQUESTS_CA_BUNDLE"
            )
        elif isinstance(error, requests.exceptions.ProxyError):
            reason = f"the proxy of this machine refused ({reason}): check HTTPS_PROXY"
        elif isinstance(error, requests.exceptions.ConnectionError) and part.size:
            raise ConnectionCutError(reason) from error
        else:
            reason = f"no connection ({reason})"
        raise MirrorError(reason) from error


def _inner_message(error: BaseException) -> str:
    """The message of the innermost cause of an error; messages of outer errors hold addresses of objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return one_line(error, REPEATED) or type(error).__name__
