"""Check the files of a release by their digests, once for each version of a file.

HDF5 and NumPy files have no checksums of their own, so a byte changed on disk would silently change a coordinate. The
digests come from the dataset's card, or were saved when `pointset data fetch` unpacked a verified archive. Files
without a known digest are not checked.
"""

import contextlib
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.catalogue.cards import Card, list_cards, load_card
from pointset.data.catalogue.home import home
from pointset.errors import PointsetError
from pointset.runs.atomic import read_json, write_json

REMEMBERED = "checked.json"
"""File in the home with size, modification time and digest of each verified file, by path."""
DIGITS = {32: "md5", 64: "sha256"}


@dataclass(frozen=True)
class KnownFiles:
    """The known digests of the files of a folder."""

    folder: Path
    digests: Mapping[str, str] = field(default_factory=dict)
    """MD5 or SHA-256, by path relative to the folder."""
    name: str = ""
    """Name of the card, or else of the folder."""

    def require(self, path: Path) -> None:
        """Raise a PointsetError if a file of the folder differs from its known digest, if any."""
        digest = self.digests.get(path.relative_to(self.folder).as_posix())
        if digest is None or not path.is_file():
            return
        version = _version(path, digest)
        if _remembered().get(str(path)) != version:
            self._compare(path, digest)
            _remember({str(path): version})

    def verify(self) -> list[str]:
        """Read all known files again, and return the problems found."""
        problems, right = list[str](), dict[str, Version | None]()
        for name, digest in self.digests.items():
            path = self.folder / name
            right[str(path)] = None
            try:
                version = _version(path, digest)
                self._compare(path, digest)
                right[str(path)] = version
            except OSError as error:
                problems.append(f"{path} cannot be read: {error.strerror or error}")
            except PointsetError as error:
                problems.append(str(error))
        _remember(right)
        return problems

    def _compare(self, path: Path, digest: str) -> None:
        kind = DIGITS[len(digest)]
        if file_digest(path, kind) != digest:
            raise PointsetError(
                f"{path} is not the file of {self.name} (another {kind.upper()}): get the data again, or, if it was "
                "changed on purpose, rename its folder"
            )


def known_files(folder: Path, card: Card | None) -> KnownFiles:
    """The known digests of the files in a folder.

    Args:
        folder: any folder; if `card` is None, a folder named as the archive of some card belongs to that card.
        card: the card by which the folder was found; None if it was given by path.
    """
    if card is None:
        card = _card_of(folder.name)
    noted = _read(notes_of(folder))
    digests = {str(name): str(digest) for name, digest in noted.items() if len(str(digest)) in DIGITS}
    if card is not None:
        digests |= card.files
    return KnownFiles(folder, digests, card.name if card else folder.name)


@functools.cache
def _card_of(folder: str) -> Card | None:
    """The card with digests whose archive is unpacked to a folder of this name, if any."""
    cards = (load_card(name) for name in list_cards())
    return next((one for one in cards if one.files and one.folder == folder), None)


def note_files(folder: Path, place: Path) -> None:
    """Save the digests of all files in a folder that was unpacked from a verified archive and will become `place`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_json(notes_of(place), {path.relative_to(folder).as_posix(): file_digest(path, "sha256") for path in files})


def notes_of(folder: Path) -> Path:
    """Path of the saved digests of a downloaded folder."""
    return folder.with_name(f".{folder.name}.digests.json")


def file_digest(path: Path, kind: str) -> str:
    """The "md5" or "sha256" digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


Version = list[int | str]
"""Size, modification time and digest of a file."""


def _version(path: Path, digest: str) -> Version:
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, digest]


def _remember(found: Mapping[str, Version | None]) -> None:
    """Save verified versions, and remove entries that are None."""
    known = {**_remembered(), **found}
    with contextlib.suppress(OSError):  # if the home is read-only, files are checked again the next time
        write_json(home() / REMEMBERED, {path: version for path, version in known.items() if version is not None})


def _remembered() -> dict[str, object]:
    return _read(home() / REMEMBERED)


def _read(path: Path) -> dict[str, object]:
    """The entries of a JSON file; empty if it is missing or damaged."""
    try:
        found = read_json(path)
    except (OSError, PointsetError):
        return {}
    return found if isinstance(found, dict) else {}
