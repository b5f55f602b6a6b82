"""Downloading one file: from the first mirror that has it, taken up where it was cut, checked before it is named."""

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from pointset.data.catalogue.cards import Download
from pointset.data.catalogue.home import disk_errors_told
from pointset.data.catalogue.part_file import Part
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from requests import Response

BLOCK = 1 << 20
TRIES = 5
"""Connections to one mirror that may be cut without a byte gained."""
PAUSE = 1.0
"""Seconds before the second of them; twice as long before each one after."""
TIMEOUT = (15, 60)
"""Seconds to connect, and to wait for the next bytes."""


class MirrorError(Exception):
    """Why one mirror did not give the file, in a few words."""


class ConnectionCutError(Exception):
    """The connection ended before the file did."""


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
    with disk_errors_told(target.parent):
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
    """Download from one mirror; once more from the beginning, if what was put together from parts is wrong."""
    part = Part(target, url, expected)
    for last in (False, True):
        _receive_whole(url, part, expected, progress)
        try:
            check_file(part.path, expected)
            break
        except MirrorError:
            from_parts = part.resumed
            part.clear()
            if last or not from_parts:
                raise
    part.finish()


def _receive_whole(url: str, part: Part, expected: Download, progress: bool) -> None:
    """Over as many connections as it takes, while each brings the end nearer."""
    idle = 0
    while not part.is_whole:
        before = part.size
        try:
            _receive(url, part, expected, progress)
            return
        except ConnectionCutError as error:
            idle = 0 if part.size > before else idle + 1
            if idle == TRIES:
                raise MirrorError(f"the connection was cut {TRIES} times in a row ({error})") from error
            if idle:
                time.sleep(PAUSE * 2 ** (idle - 1))


def _receive(url: str, part: Part, expected: Download, progress: bool) -> None:
    """One connection: append what comes."""
    import requests
    import urllib3

    try:
        with requests.get(url, headers=part.headers, stream=True, timeout=TIMEOUT) as response:
            _require_file(response, part)
            _require_length(response, part, expected)
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


def _require_file(response: "Response", part: Part) -> None:
    """See that the answer is a file, whole or from where the part ends."""
    if response.status_code == 206 and not part.goes_on_with(response):
        part.clear()
        raise ConnectionCutError("the server sent other bytes than it was asked for")
    if response.status_code == 416:
        part.clear()
        raise ConnectionCutError("the file on the server is shorter than what was received")
    if not response.ok:
        raise MirrorError(f"the server answered {response.status_code} {response.reason}")
    if response.headers.get("Content-Type", "").startswith("text/html"):
        raise MirrorError("a web page came instead of the file")


def _require_length(response: "Response", part: Part, expected: Download) -> None:
    """Refuse a file of another length before its bytes come, and before what came from elsewhere is given up."""
    total = part.total_with(response)
    if total is not None and expected.size not in (None, total):
        raise MirrorError(f"it has {total:,} bytes instead of {expected.size:,}")


def _append(response: "Response", part: Part, progress: bool) -> None:
    with (
        part.path.open("ab") as file,
        tqdm(
            desc=part.target.name,
            total=part.total,
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
    if part.total is not None and not part.is_whole:
        raise ConnectionCutError(f"{part.size:,} of {part.total:,} bytes came")


def _digest(path: Path, name: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, name).hexdigest()


def _root(error: BaseException) -> str:
    """The innermost reason of an error that wraps others, without addresses of objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
