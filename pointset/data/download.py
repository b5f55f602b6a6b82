"""Downloading one file: from the first mirror that has it, taken up where it was cut, checked before it is named."""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from pointset.atomic import read_json, write_json
from pointset.data.cards import Download
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from requests import Response

BLOCK = 1 << 20
TRIES = 5
"""Connections to one mirror that may be cut without a byte gained."""
TIMEOUT = (15, 60)
"""Seconds to connect, and to wait for the next bytes."""


class MirrorError(Exception):
    """Why one mirror did not give the file, in a few words."""


def download(urls: Sequence[str], target: Path, expected: Download, *, progress: bool = True) -> None:
    """Download a file unless it is there.

    What was received is kept beside `target` with the suffix `.part`; the next call goes on from there if the server
    can, and if the file is still the same one.

    Args:
        urls: mirrors of the same file, tried in order.
        target: where the file goes, once it is whole and right.
        expected: size and digests, as far as they are known.
        progress: show a bar, if the output is a terminal.

    Raises:
        PointsetError: no mirror gave the right file, each with its reason, or the disk is full or read-only.
    """
    reasons = []
    with _disk_errors_told(target.parent):
        for url in urls:
            try:
                _from_mirror(url, target, expected, progress)
                return
            except MirrorError as error:
                reasons.append(f"{url}: {error}")
    raise PointsetError(
        f"{target.name} could not be downloaded ({'; '.join(reasons)}): run the same command again to go on, or get "
        f"the file in another way and save it as {target}"
    )


def check_file(path: Path, expected: Download) -> None:
    """Compare a file with what is known of it.

    Raises:
        MirrorError: its size or a digest is another.
    """
    size = path.stat().st_size
    if expected.size is not None and size != expected.size:
        raise MirrorError(f"it has {size:,} bytes instead of {expected.size:,}")
    for name in ("sha256", "md5"):
        digest = getattr(expected, name)
        if digest is not None and _digest(path, name) != digest:
            raise MirrorError(f"its {name.upper()} is not the expected one")


def _from_mirror(url: str, target: Path, expected: Download, progress: bool) -> None:
    """Download from one mirror, over as many connections as it takes while each brings the end nearer."""
    part = Part(target, url, expected)
    idle = 0
    while True:
        before = part.size
        try:
            _receive(url, part, progress)
            break
        except ConnectionCutError as error:
            idle = 0 if part.size > before else idle + 1
            if idle == TRIES:
                raise MirrorError(f"the connection was cut {TRIES} times in a row ({error})") from error
    try:
        check_file(part.path, expected)
    except MirrorError:
        part.clear()
        raise
    part.finish()


class ConnectionCutError(Exception):
    """The connection ended before the file did."""


class Part:
    """What has been received of a file, and from which version of it."""

    def __init__(self, target: Path, url: str, expected: Download) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self.note = target.with_name(target.name + ".part.json")
        noted = read_json(self.note) if self.note.exists() and self.path.exists() else {}
        self.validator: str | None = noted.get("validator") if noted.get("url") == url else None
        # Bytes of another version are only ever glued on where a digest would find it out.
        if self.validator is None and expected.sha256 is None and expected.md5 is None:
            self.clear()

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def headers(self) -> dict[str, str]:
        """What to ask a server for, to get the rest."""
        plain = {"Accept-Encoding": "identity"}
        if not self.size:
            return plain
        condition = {"If-Range": self.validator} if self.validator else {}
        return {**plain, "Range": f"bytes={self.size}-", **condition}

    def begin(self, url: str, response: "Response") -> None:
        """Note which version of the file is coming."""
        tag = response.headers.get("ETag", "")
        strong = tag if tag and not tag.startswith("W/") else None
        self.validator = strong or response.headers.get("Last-Modified")
        write_json(self.note, {"url": url, "validator": self.validator})

    def clear(self) -> None:
        """Begin anew."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the whole file its name."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.note.unlink(missing_ok=True)


def _receive(url: str, part: Part, progress: bool) -> None:
    """One connection: append what comes."""
    import requests
    import urllib3

    try:
        with requests.get(url, headers=part.headers, stream=True, timeout=TIMEOUT) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                part.clear()  # more than there is: it was another file
                raise ConnectionCutError("the file on the server is shorter than what was received")
            if not response.ok:
                raise MirrorError(f"the server answered {response.status_code} {response.reason}")
            resumed = _resumes(response, part)
            if not resumed:
                part.clear()
            part.begin(url, response)
            _append(response, part, progress)
    except requests.exceptions.SSLError as error:
        raise MirrorError(
            f"the server's certificate was refused ({_root(error)}): check this machine's clock, or name your "
            "network's certificates in REQUESTS_CA_BUNDLE"
        ) from error
    except requests.exceptions.ProxyError as error:
        raise MirrorError(f"the proxy of this machine refused ({_root(error)}): check HTTPS_PROXY") from error
    except (urllib3.exceptions.HTTPError, requests.exceptions.ReadTimeout) as error:
        raise ConnectionCutError(_root(error)) from error
    except requests.exceptions.ConnectionError as error:
        if part.size:
            raise ConnectionCutError(_root(error)) from error
        raise MirrorError(f"no connection ({_root(error)})") from error
    except requests.exceptions.RequestException as error:
        raise MirrorError(_root(error)) from error


def _resumes(response: "Response", part: Part) -> bool:
    """Whether the answer goes on exactly where the part ends."""
    if response.status_code != 206:
        return False
    return response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-")


def _append(response: "Response", part: Part, progress: bool) -> None:
    length = response.headers.get("Content-Length")
    total = None if length is None else part.size + int(length)
    with (
        part.path.open("ab") as file,
        tqdm(
            desc=part.target.name,
            total=total,
            initial=part.size,
            unit="B",
            unit_scale=True,
            disable=None if progress else True,
        ) as bar,
    ):
        # What has come is written at once: a larger buffer would be lost with the connection.
        while block := response.raw.read1(BLOCK):
            file.write(block)
            bar.update(len(block))
    if total is not None and part.size != total:
        raise ConnectionCutError(f"{part.size:,} of {total:,} bytes came")


def _digest(path: Path, name: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, name).hexdigest()


def _root(error: BaseException) -> str:
    """The innermost reason of an error that wraps others, without addresses of objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__


@contextmanager
def _disk_errors_told(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into one sentence; what was received stays."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise PointsetError(
            f"cannot write to {folder} ({error.strerror}): make room, or set POINTSET_HOME to a folder on another "
            "disk, and run the same command again"
        ) from error
