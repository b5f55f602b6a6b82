"""What has been received of a file that is being downloaded, and from which version of it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.data.catalogue.cards import Download
from pointset.runs.atomic import read_json, write_json

if TYPE_CHECKING:
    from requests import Response


class Part:
    """The file `target.part`, and the note `target.part.json` that says where it comes from."""

    def __init__(self, target: Path, url: str, expected: Download) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".part")
        self.note = target.with_name(target.name + ".part.json")
        noted = read_json(self.note) if self.note.exists() and self.path.exists() else {}
        same = noted.get("url") == url
        self.validator: str | None = noted.get("validator") if same else None
        self.total: int | None = noted.get("total") if same else None
        # Bytes of another version are only ever glued on where a digest would find it out.
        if self.validator is None and expected.sha256 is None and expected.md5 is None:
            self.clear()
        self.resumed = self.size > 0
        """Whether it is put together from more than one answer."""

    @property
    def size(self) -> int:
        """Bytes received so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def is_whole(self) -> bool:
        """Whether all bytes came that the server had announced."""
        return self.total is not None and self.size == self.total

    @property
    def headers(self) -> dict[str, str]:
        """What to ask a server for, to get the rest."""
        plain = {"Accept-Encoding": "identity"}
        if not self.size:
            return plain
        condition = {"If-Range": self.validator} if self.validator else {}
        return {**plain, "Range": f"bytes={self.size}-", **condition}

    def goes_on_with(self, response: "Response") -> bool:
        """Whether an answer begins exactly where this ends, in the same version of the file."""
        begins = response.headers.get("Content-Range", "").startswith(f"bytes {self.size}-")
        return begins and (self.validator is None or _validator(response) in (self.validator, None))

    def total_with(self, response: "Response") -> int | None:
        """Bytes of the whole file, as far as an answer says."""
        length = response.headers.get("Content-Length")
        return None if length is None else int(length) + (self.size if response.status_code == 206 else 0)

    def begin(self, url: str, response: "Response") -> None:
        """Note what is coming; an answer that is all of the file begins anew."""
        total = self.total_with(response)
        self.resumed = response.status_code == 206
        validator = _validator(response) or (self.validator if self.resumed else None)
        if not self.resumed:
            self.clear()
        self.validator, self.total = validator, total
        write_json(self.note, {"url": url, "validator": validator, "total": total})

    def clear(self) -> None:
        """Begin anew."""
        self.resumed, self.validator, self.total = False, None, None
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self) -> None:
        """Give the whole file its name."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)
        self.note.unlink(missing_ok=True)


def _validator(response: "Response") -> str | None:
    """What tells versions of a file apart: its strong entity tag, else its date."""
    tag = response.headers.get("ETag", "")
    strong = tag if tag and not tag.startswith("W/") else None
    return strong or response.headers.get("Last-Modified")
