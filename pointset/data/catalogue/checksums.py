"""Check the files of a release by their digests.

HDF5 and NumPy files have no checksums of their own, so a byte changed on disk would silently change a coordinate. The
digests come from the dataset's card, or were saved when `pointset data fetch` unpacked a verified archive. Files
without a known digest are not checked.
"""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pointset.data.catalogue.cards import Card, list_cards, load_card
from pointset.errors import PointsetError
from pointset.runs.atomic import read_json, write_json

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
        kind = DIGITS[len(digest)]
        if file_digest(path, kind) != digest:
            raise PointsetError(
                f"{path} is not the file of {self.name} (another {kind.upper()}): get the data again, or, if it was "
                "changed on purpose, rename its folder"
            )

    def problems(self) -> list[str]:
        """What is wrong with the files: a sentence for each."""
        problems = []
        for path in (self.folder / name for name in self.digests):
            try:
                self.require(path)
                path.stat()
            except OSError as error:
                problems.append(f"{path} cannot be read: {error.strerror or error}")
            except PointsetError as error:
                problems.append(str(error))
        return problems


def known_files(folder: Path, card: Card | None) -> KnownFiles:
    """The known digests of the files in a folder.

    Args:
        folder: any folder; if `card` is None, a folder named as the archive of some card belongs to that card.
        card: the card by which the folder was found; None if it was given by path.
    """
    if card is None:
        card = _card_of(folder.name)
    try:
        noted = dict(read_json(_notes_of(folder)))
    except (OSError, PointsetError, ValueError, TypeError):  # missing or damaged
        noted = {}
    digests = {name: str(digest) for name, digest in noted.items() if len(str(digest)) in DIGITS}
    if card is not None:
        digests |= card.files
    return KnownFiles(folder, digests, card.name if card else folder.name)


@functools.cache
def _card_of(folder: str) -> Card | None:
    """The card with digests whose archive is unpacked to a folder of this name, if any."""
    cards = (load_card(name) for name in list_cards())
    return next((card for card in cards if card.files and card.folder == folder), None)


def note_files(folder: Path, target: Path) -> None:
    """Save the digests of all files in a folder that was unpacked from a verified archive and will become `target`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    write_json(_notes_of(target), {path.relative_to(folder).as_posix(): file_digest(path, "sha256") for path in files})


def _notes_of(folder: Path) -> Path:
    """The file with saved digests, beside a downloaded folder, which is left as it was."""
    return folder.with_name(f".{folder.name}.digests.json")


def file_digest(path: Path, kind: str) -> str:
    """The "md5" or "sha256" digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
