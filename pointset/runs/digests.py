"""Files with digests: whatever a folder of ours has is listed in its SHA256SUMS, and compared when it is read.

The list is in the format of `sha256sum`: `sha256sum -c SHA256SUMS` checks a folder by hand. A file and its digest are
two files, and a kill may come between any two writes, so the new digest is listed beside the old one before the file
is renamed into place, and the old one is dropped after it: a file is whole if any line with its name fits.

One process writes into a folder, the one that owns it (see `pointset.runs.claims`); any number of others read.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pointset.errors import QUOTED, PointsetError, one_line
from pointset.runs.atomic import as_json, full_disk_told, write_atomically

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\n]+)")
T = TypeVar("T")


class DamagedError(PointsetError):
    """A file is not what was written, or nothing says that it is.

    Attributes:
        fault: the message without what to do.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        self.fault = fault
        super().__init__(f"{fault}: {remedy}")


def write(path: Path, content: bytes) -> None:
    """Write a file atomically, and its digest; after a kill in between, the old file or the new one is whole.

    Raises:
        DiskFullError: there is no room for it.
        DamagedError: the list of the folder is damaged.
    """
    digest = _digest(content)
    listed = read_list(path.parent)
    before = listed.get(path.name, ())
    if digest not in before:
        _write_list(path.parent, listed | {path.name: (*before, digest)})
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
    if set(before) - {digest}:
        _write_list(path.parent, listed | {path.name: (digest,)})


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text; see `write`."""
    write(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; see `write`."""
    write_text(path, as_json(value))


def remove(path: Path) -> None:
    """Remove a file, and then its line from the list, which may be left of a kill in between.

    Raises:
        DamagedError: the list of the folder is damaged.
    """
    path.unlink(missing_ok=True)
    listed = read_list(path.parent)
    if listed.pop(path.name, None) is not None:
        _write_list(path.parent, listed)


def fill(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files and their list into a new folder that is not in its place yet.

    Raises:
        DiskFullError: there is no room for them.
    """
    for name, content in contents.items():
        with full_disk_told(folder / name):
            (folder / name).write_bytes(content)
    with full_disk_told(folder / SUMS):
        lines = _as_text({name: (_digest(content),) for name, content in contents.items()})
        (folder / SUMS).write_text(lines, encoding="utf-8")


def read(path: Path, remedy: str) -> bytes:
    """The bytes of a file that was written here.

    Args:
        path: of the file.
        remedy: what to do where there is no copy of it: "delete ... and run the same command again".

    Raises:
        DamagedError: the file is missing, it is not what was written, or it is not listed.
    """
    seen = None
    while True:
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise DamagedError(f"{path} is missing", f"restore it from a copy, or {remedy}") from error
        except OSError as error:
            fault = f"{path} cannot be read ({error.strerror})"
            raise DamagedError(fault, f"restore it from a copy, or {remedy}") from error
        digest, listed = _digest(content), read_list(path.parent).get(path.name, ())
        if digest in listed:
            return content
        if seen == (digest, listed):  # twice the same: no writer came between the two readings
            raise _fault(path, listed, remedy)
        seen = digest, listed


def _fault(path: Path, listed: tuple[str, ...], remedy: str) -> DamagedError:
    if listed:
        fault = f"{path} has changed since it was written (it differs from its digest in {SUMS})"
        return DamagedError(fault, f"restore it from a copy, or {remedy}")
    command = f"cd {shlex.quote(str(path.parent))} && sha256sum {shlex.quote(path.name)} >> {SUMS}"
    fault = f"{path} is not listed in the {SUMS} beside it, so it cannot be verified"
    return DamagedError(fault, f"if you trust it, run `{command}`, or {remedy}")


def read_text(path: Path, remedy: str) -> str:
    """The text of a file that was written here; see `read`."""
    return parse(path, bytes.decode, "text", remedy)


def read_json(path: Path, remedy: str) -> Any:
    """What a file of JSON holds; see `read`."""
    return parse(path, json.loads, "JSON", remedy)


def parse(path: Path, parser: Callable[[bytes], T], what: str, remedy: str) -> T:
    """What a parser makes of a file's bytes; whatever the parser raises is an error that names the file.

    Args:
        path: of the file.
        parser: from the bytes to what they hold.
        what: this, in a word or two.
        remedy: see `read`.

    Raises:
        DamagedError: the file is damaged, or holds something else.
    """
    content = read(path, remedy)
    try:
        return parser(content)
    except PointsetError:
        raise
    except Exception as error:  # torch, numpy and safetensors raise a dozen kinds
        fault = f"{path} does not hold {what} ({one_line(error, QUOTED) or type(error).__name__})"
        raise DamagedError(fault, f"restore it from a copy, or {remedy}") from error


def read_list(folder: Path) -> dict[str, tuple[str, ...]]:
    """The digests of each file that is listed in a folder: one, or two while it is being replaced.

    Raises:
        DamagedError: the list is damaged.
    """
    path = folder / SUMS
    remedy = "restore it from a copy, or delete its folder and run the same command again"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error.strerror})", remedy) from error
    except ValueError as error:
        raise DamagedError(f"{path} is damaged, it is not text", remedy) from error
    listed: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, start=1):
        if not (found := LINE.fullmatch(line)):
            raise DamagedError(f"{path} is damaged, line {number} is not a digest and a name", remedy)
        listed[found[2]] = (*listed.get(found[2], ()), found[1])
    return listed


def _write_list(folder: Path, listed: Mapping[str, tuple[str, ...]]) -> None:
    write_atomically(folder / SUMS, lambda temporary: temporary.write_text(_as_text(listed), encoding="utf-8"))


def _as_text(listed: Mapping[str, tuple[str, ...]]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digests in listed.items() for digest in digests)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
