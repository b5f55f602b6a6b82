"""Whether the files of a release are whole, by their digests: checked once for each version of a file, and remembered.

HDF5 and NumPy files have no checksums of their own, so a byte that changed on the disk would be another coordinate. The
digests come from the dataset's card, or were noted when `pointset data fetch` unpacked a right archive. A file that
neither knows is read as it is.
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
"""In the home: size, modification time and digest of each file that was right, by its path."""
DIGITS = {32: "md5", 64: "sha256"}


@dataclass(frozen=True)
class KnownFiles:
    """The digests that are known of the files of one folder."""

    folder: Path
    digests: Mapping[str, str] = field(default_factory=dict)
    """MD5 or SHA-256, by path inside the folder."""
    name: str = ""
    """The card's."""

    def require(self, path: Path) -> None:
        """Raise a PointsetError if a file of the folder is not the one that is known; an unknown one passes."""
        digest = self.digests.get(path.relative_to(self.folder).as_posix())
        if digest is None or not path.is_file():
            return
        version = _version(path, digest)
        if _remembered().get(str(path)) != version:
            self._compare(path, digest)
            _remember({str(path): version})

    def verify(self) -> list[str]:
        """What is wrong with the known files, all read anew."""
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
                "changed on purpose, give its folder another name"
            )


def known_files(folder: Path, card: Card | None) -> KnownFiles:
    """What is known of the files in a folder.

    Args:
        folder: of a card's data, or any other. It counts as a card's data too if it has the name that the card's
            archive unpacks to.
        card: by which the folder was found; None if it was given by path.
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
    """The card whose archive unpacks to a folder of that name, if it knows digests."""
    cards = (load_card(name) for name in list_cards())
    return next((one for one in cards if one.files and one.folder == folder), None)


def note_files(folder: Path, place: Path) -> None:
    """Write down the digests of all files in a folder, just unpacked from a right archive, that goes to `place`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_json(notes_of(place), {path.relative_to(folder).as_posix(): file_digest(path, "sha256") for path in files})


def notes_of(folder: Path) -> Path:
    """Where the digests of a fetched folder are."""
    return folder.with_name(f".{folder.name}.digests.json")


def file_digest(path: Path, kind: str) -> str:
    """The "md5" or "sha256" of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


Version = list[int | str]
"""Size, modification time and digest of a file."""


def _version(path: Path, digest: str) -> Version:
    facts = path.stat()
    return [facts.st_size, facts.st_mtime_ns, digest]


def _remember(found: Mapping[str, Version | None]) -> None:
    """Note versions that are right, and forget those that are None."""
    known = {**_remembered(), **found}
    with contextlib.suppress(OSError):  # a home that is read-only: it is checked again the next time
        write_json(home() / REMEMBERED, {path: version for path, version in known.items() if version is not None})


def _remembered() -> dict[str, object]:
    return _read(home() / REMEMBERED)


def _read(path: Path) -> dict[str, object]:
    """A file of notes; nothing is known where it is absent or damaged."""
    try:
        found = read_json(path)
    except (OSError, PointsetError):
        return {}
    return found if isinstance(found, dict) else {}
