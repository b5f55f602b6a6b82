"""Download a file from its mirrors, and resume interrupted downloads, which pooch, the usual library, cannot."""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.data.catalogue.cards import Download
from pointset.data.catalogue.home import disk_errors_told
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


class MirrorError(Exception):
    """A mirror did not deliver the file; the message is a short reason."""


class ConnectionCutError(Exception):
    """The connection ended before the end of the file."""


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
    with disk_errors_told(target.parent):
        for url in urls:
            part = Part(target, url)
            try:
                _receive_whole(url, part, expected, progress, pause)
            except MirrorError as error:
                reasons.append(f"{url}: {error}")
                continue
            fault = file_fault(part.path, expected)
            if not fault:
                if mark is not None:
                    mark.touch()
                part.finish()
                return
            part.clear()
            reasons.append(f"{url}: {fault}")
    raise PointsetError(
        f"{target.name} could not be downloaded ({'; '.join(reasons)}): run the same command again to go on, or get "
        f"the file in another way and save it as {target}"
    )


def file_fault(path: Path, expected: Download) -> str:
    """How a file differs from the expected size and digests; "" if it does not."""
    size = path.stat().st_size
    if expected.size not in (None, size):
        return f"it has {size:,} bytes instead of {expected.size:,}"
    for name in ("sha256", "md5"):
        digest = getattr(expected, name)
        with path.open("rb") as file:
            if digest is not None and hashlib.file_digest(file, name).hexdigest() != digest:
                return f"its {name.upper()} is not the expected one"
    return ""


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
        self.validator, self.total = _read_note(self.note)
        if self.validator is None:
            self.clear()

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request for the remaining bytes."""
        rest = {"Range": f"bytes={self.size}-", "If-Range": self.validator} if self.size and self.validator else {}
        return {"Accept-Encoding": "identity", **rest}

    def begin(self, response: "Response", expected: Download) -> None:
        """Check a response and note its version; a response with the whole file discards the bytes received so far."""
        headers = response.headers
        goes_on = response.status_code == 206
        validator = _validator(response) or (self.validator if goes_on else None)
        sent = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", ""), re.ASCII)
        fits = sent is not None and int(sent[1]) == self.size and validator == self.validator
        if response.status_code == 416 or (goes_on and not (fits and self.size)):
            self.clear()
            raise ConnectionCutError("the server sent a different byte range than requested")
        if response.status_code not in (200, 206):
            raise MirrorError(f"the server answered {response.status_code} {one_line(response.reason, QUOTED)}")
        if headers.get("Content-Type", "").startswith("text/html"):
            raise MirrorError("the server sent a web page instead of the file")
        if (coding := headers.get("Content-Encoding", "identity")) != "identity":
            raise MirrorError(f"the server sent it compressed ({quoted(coding)}), which was not requested")
        length = _length(headers.get("Content-Length"))
        if not goes_on:
            self.clear()
        self.validator, self.total = validator, None if length is None else length + self.size
        if sent is not None and sent[2] != "*":
            self.total = int(sent[2])
        if self.total is not None and expected.size not in (None, self.total):
            raise MirrorError(f"it has {self.total:,} bytes instead of {expected.size:,}")
        write_json(self.note, {"validator": validator, "total": self.total})

    def clear(self) -> None:
        """Discard the received bytes."""
        self.validator, self.total = None, None
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Rename the complete file to its target, and remove parts from other mirrors."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        drop_parts(self.target)


def drop_parts(target: Path) -> None:
    """Remove the partial downloads of a file that is complete."""
    for left in target.parent.glob(f"{target.name}.????????.*"):
        left.unlink()


def _read_note(note: Path) -> tuple[str | None, int | None]:
    """Validator and total in a note; None for both if it is missing or damaged, which restarts the download."""
    try:
        found = read_json(note) if note.exists() else {}
        validator, total = found["validator"], found["total"]
    except (PointsetError, KeyError, TypeError):
        return None, None
    if not isinstance(validator, str) or not isinstance(total, int | None):
        return None, None
    return validator, total


def _length(header: str | None) -> int | None:
    """The value of a Content-Length header, which may be repeated; None without one."""
    if header is None:
        return None
    given = {part.strip() for part in header.split(",")}
    if len(given) != 1 or not re.fullmatch(r"\d{1,18}", number := given.pop(), re.ASCII):
        raise MirrorError(f"its Content-Length is {quoted(header)}, which is not a number of bytes")
    return int(number)


def _validator(response: "Response") -> str | None:
    """The version of a file: its strong ETag, else its modification date."""
    tag = response.headers.get("ETag", "")
    strong = tag if tag and not tag.startswith("W/") else None
    return strong or response.headers.get("Last-Modified")


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
        with requests.get(url, headers=part.headers, stream=True, timeout=TIMEOUT) as response:
            part.begin(response, expected)
            _append(response, part, expected.size if part.total is None else part.total, progress)
    except requests.exceptions.SSLError as error:
        raise MirrorError(
            f"the server's certificate was refused ({_inner_message(error)}): check this machine's clock, or name your "
            "network's certificates in REQUESTS_CA_BUNDLE"
        ) from error
    except requests.exceptions.ProxyError as error:
        raise MirrorError(f"the proxy of this machine refused ({_inner_message(error)}): check HTTPS_PROXY") from error
    except (urllib3.exceptions.HTTPError, requests.exceptions.ReadTimeout) as error:
        raise ConnectionCutError(_inner_message(error)) from error
    except (requests.exceptions.TooManyRedirects, requests.exceptions.InvalidHeader) as error:
        raise MirrorError(_inner_message(error)) from error
    except requests.exceptions.RequestException as error:
        if part.size and isinstance(error, requests.exceptions.ConnectionError):
            raise ConnectionCutError(_inner_message(error)) from error
        raise MirrorError(f"no connection ({_inner_message(error)})") from error


def _append(response: "Response", part: Part, most: int | None, progress: bool) -> None:
    """Append the received bytes to the part; fail if there are more than `most`."""
    size = part.size
    with (
        part.path.open("ab") as file,
        progress_bar(part.target.name, "B", part.total, show=progress, done=size, scaled=True) as bar,
    ):
        # read1 returns what has arrived; waiting for a full block would lose its bytes if the connection is cut.
        while block := response.raw.read1(BLOCK):
            size += len(block)
            if most is not None and size > most:
                break
            file.write(block)
            bar.update(len(block))
    if most is not None and size > most:
        part.clear()
        raise MirrorError(f"the server sent more than {most:,} bytes")
    if part.total not in (None, part.size):
        raise ConnectionCutError(f"{part.size:,} of {part.total:,} bytes were received")


def _inner_message(error: BaseException) -> str:
    """The message of the innermost cause of an error; messages of outer errors hold addresses of objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return one_line(error, REPEATED) or type(error).__name__
