"""Files with digests: each folder lists the SHA-256 of its files in SHA256SUMS, and every read is verified against it.

The list has the format of `sha256sum`, so `sha256sum -c SHA256SUMS` checks a folder by hand. The process may be killed
between any two writes. Therefore the new digest is added to the list before the file is replaced, and the old digest is
removed afterwards; a file is intact if any line with its name matches.

Only the process that owns a folder writes into it (see `pointset.runs.claims`); any number of processes may read.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pointset.errors import QUOTED, PointsetError, one_line
from pointset.runs import atomic
from pointset.runs.atomic import as_json, write_atomically
from pointset.runs.files import read_file

SUMS = "SHA256SUMS"
DIGEST_LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)")
T = TypeVar("T")


class DamagedError(PointsetError):
    """A file is missing, differs from what was written, or cannot be verified.

    Attributes:
        fault: the message without the remedy.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        self.fault = fault
        super().__init__(f"{fault}: {remedy}")


def sha256(content: bytes) -> str:
    """The digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def write(path: Path, content: bytes) -> None:
    """Write a file and its digest atomically: if the process is killed, the old file or the new one is intact."""
    digest, listed = sha256(content), read_list(path.parent)
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
    write(path, as_json(value).encode())


def remove(path: Path) -> None:
    """Remove a file, then its line from the list; if the process is killed between the two, the line remains."""
    path.unlink(missing_ok=True)
    listed = read_list(path.parent)
    if listed.pop(path.name, None) is not None:
        _write_list(path.parent, listed)


def fill(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files and their list into a new folder, not atomically: nothing may use the folder yet."""
    lines = _as_text({name: (sha256(content),) for name, content in contents.items()})
    for name, content in {**contents, SUMS: lines.encode()}.items():
        (folder / name).write_bytes(content)


def read(path: Path, remedy: str) -> bytes:
    """The verified bytes of a file; `remedy` is what messages recommend without a backup copy."""
    seen = None
    while True:
        try:
            content = read_file(path)
        except FileNotFoundError as error:
            raise DamagedError(f"{path} is missing", f"restore it from a copy, or {remedy}") from error
        except (OSError, PointsetError) as error:
            fault = f"cannot be read ({one_line(error, QUOTED)})"
            raise DamagedError(f"{path} {fault}", f"restore it from a copy, or {remedy}") from error
        digest, listed = sha256(content), read_list(path.parent).get(path.name, ())
        if digest in listed:
            return content
        if seen == (digest, listed):  # the same result twice: no writer is replacing the file right now
            break
        seen = digest, listed
    if listed:
        fault = f"{path} has changed since it was written (it differs from its digest in {SUMS})"
        raise DamagedError(fault, f"restore it from a copy, or {remedy}")
    command = f"cd {shlex.quote(str(path.parent))} && sha256sum {shlex.quote(path.name)} >> {SUMS}"
    fault = f"{path} is not listed in the {SUMS} beside it, so it cannot be verified"
    raise DamagedError(fault, f"if you trust it, run `{command}`, or {remedy}")


def read_text(path: Path, remedy: str) -> str:
    """Read the text of a file; see `read`."""
    return parse(path, bytes.decode, "text", remedy)


def read_json(path: Path, remedy: str, kind: Any = Any) -> Any:
    """Read the content of a JSON file, which has to be of a type; see `read` and `checked_json`."""
    return parse(path, lambda content: checked_json(content, kind), "JSON" if kind is Any else "what it should", remedy)


def checked_json(content: bytes, kind: Any) -> Any:
    """Plain data from JSON, after a check against a type that msgspec knows, such as a TypedDict; a ValueError."""
    value = json.loads(content)
    msgspec.convert(value, kind)
    return value


def parse(path: Path, parser: Callable[[bytes], T], what: str, remedy: str) -> T:
    """Read and parse a file; an exception of the parser becomes an error that names the file and `what` it holds."""
    content = read(path, remedy)
    try:
        return parser(content)
    except PointsetError:
        raise
    except Exception as error:  # torch, numpy and safetensors raise many types of exceptions
        fault = f"{path} does not hold {what} ({one_line(error, QUOTED) or type(error).__name__})"
        raise DamagedError(fault, f"restore it from a copy, or {remedy}") from error


def read_list(folder: Path) -> dict[str, tuple[str, ...]]:
    """The digests of the files listed in a folder: one per file, or two while a file is being replaced."""
    path, listed, fault = folder / SUMS, dict[str, tuple[str, ...]](), ""
    try:
        for number, line in enumerate(read_file(path).decode().split("\n")[:-1], start=1):
            if not (match := DIGEST_LINE.fullmatch(line)):
                fault = f"is damaged, line {number} is not a digest and a name"
                break
            listed[match[2]] = (*listed.get(match[2], ()), match[1])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, PointsetError) as error:
        fault = f"cannot be read ({one_line(error, QUOTED)})"
    if fault:
        remedy = "restore it from a copy, or delete its folder and run the same command again"
        raise DamagedError(f"{path} {fault}", remedy)
    return listed


def _write_list(folder: Path, listed: Mapping[str, tuple[str, ...]]) -> None:
    atomic.write_text(folder / SUMS, _as_text(listed))


def _as_text(listed: Mapping[str, tuple[str, ...]]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digests in listed.items() for digest in digests)
