"""Read dataset cards: one TOML file per dataset, in `datasets` (see its README) or, in the wheel, `pointset/cards`."""

import difflib
import hashlib
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pointset.configuration import Count, Text, check
from pointset.errors import REPEATED, PointsetError, one_line, quoted

MD5 = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
SHA256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Digest = Annotated[str, Meta(pattern="^([0-9a-f]{32}|[0-9a-f]{64})$")]
PROJECT_FOLDER = Path(__file__).resolve().parents[2]


class Download(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Verified size and digests of a published archive."""

    size: Count | None = None
    """Size in bytes."""
    md5: MD5 | None = None
    sha256: SHA256 | None = None


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The description of one dataset."""

    name: Text
    """The name for `load_dataset` and the command line."""
    title: Text
    """The full name, for texts."""
    kind: Literal["generated", "meshes", "hdf5", "npy"]
    """Kind of data: generated on first use, mesh files, or point clouds in HDF5 or .npy files."""
    summary: Text
    """One-line summary."""
    licence: Text
    """The terms of use."""
    citation: Text
    """The paper to cite."""
    classes: Annotated[tuple[Text, ...], Meta(min_length=2)]
    """Names of the classes, in the order of the labels."""
    up: Literal["y", "z"]
    """The axis that points up."""
    splits: dict[str, Count]
    """Shapes per split."""
    homepage: str = ""
    """Web page of the dataset."""
    urls: tuple[Text, ...] = ()
    """URLs of the archive, the original first, then its mirrors."""
    instructions: str = ""
    """How to get the data, if it cannot be downloaded automatically."""
    folder: str = ""
    """The folder to which the archive is unpacked."""
    variants: tuple[Text, ...] = ()
    """Names of the variants (versions) of the data."""
    defects: tuple[Text, ...] = ()
    """Known defects, one sentence for each."""
    download: Download = Download()
    """Verified size and digests of the archive."""
    files: dict[str, Digest] = {}
    """MD5 or SHA-256 of unpacked files, by path in the folder."""

    def fault_of(self, folder: Path, name: str) -> str:
        """Return a message if the digest of a file in the data folder differs from that on the card, else ""."""
        path, digest = folder / name, self.files[name]
        kind = "md5" if len(digest) == 32 else "sha256"
        try:
            return "" if file_digest(path, kind) == digest else f"{path} is not the file of {self.name}"
        except OSError as error:
            return f"{path} cannot be read: {error.strerror or error}"


def file_digest(path: Path, kind: str) -> str:
    """Return the "md5" or "sha256" digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def cards_folder() -> Path:
    """Return the folder with the cards: `cards` in an installed package, or `datasets` in a checkout."""
    for folder in (PROJECT_FOLDER / "cards", PROJECT_FOLDER.parent / "datasets"):
        if folder.is_dir():
            return folder
    raise PointsetError(f"the dataset cards of {PROJECT_FOLDER} are missing: install pointset again")


def list_cards() -> list[str]:
    """List the names of all cards.

    Returns:
        Names for `load_card` and `pointset.load_dataset`, sorted.
    """
    return sorted(path.stem for path in cards_folder().glob("*.toml"))


def is_on_disk(source: str) -> bool:
    """Return True if `source` names a card or is an absolute path, so that the dataset can be loaded again."""
    return source in list_cards() or Path(source).is_absolute()


def load_card(name: str) -> Card:
    """Read one card.

    Args:
        name: one of `list_cards()`.

    Returns:
        The card.

    Raises:
        PointsetError: no card has this name, or the file of the card is wrong (the message names the file and the key).
    """
    check("name", name, str)
    if name not in list_cards():
        raise PointsetError(f"no dataset is called {quoted(name)}: {did_you_mean(name)}")
    path = cards_folder() / f"{name}.toml"
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Card)
    except (OSError, ValueError, RecursionError) as error:
        raise PointsetError(f"the card {path} cannot be used: {one_line(error, REPEATED)}") from error


def did_you_mean(name: str) -> str:
    """Return a text with the most similar names of cards, or with all names if none is similar."""
    names = list_cards()
    near = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {', '.join(near)}?" if near else f"the datasets are {', '.join(names)}"
