"""Download and unpack the data of a card."""

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pointset.data.catalogue.archives import unpack
from pointset.data.catalogue.cards import Card, load_card
from pointset.data.catalogue.download import download, drop_parts, file_fault
from pointset.data.catalogue.home import datasets_home, locked, make_folder
from pointset.data.catalogue.intact import note_files
from pointset.data.catalogue.locate import locate_data, present_folder
from pointset.errors import PointsetError


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download and unpack the data of a card unless it is present; an interrupted download is resumed.

    A second process that fetches the same data waits for the first. An archive that the user saved at the place named
    in the message of a failed download is unpacked and kept.

    Returns:
        The folder with the data.

    Raises:
        PointsetError: the card is unknown or has no URL, or the data cannot be downloaded or unpacked; the message
            says where to save the file by hand.
    """
    card = load_card(name)
    if card.kind == "generated":
        return locate_data(name, progress=progress)[1]
    there = present_folder(card)
    if there is not None:  # checked before locking, because the home may be read-only
        return there
    parent = make_folder(datasets_home())
    with locked(parent / f".{card.name}"):
        return present_folder(card) or _fetch(card, parent, progress)


def _fetch(card: Card, parent: Path, progress: bool) -> Path:
    if not card.urls:
        raise PointsetError(
            f"{card.name} cannot be downloaded automatically: {card.instructions}, so that it makes "
            f"{parent / card.folder}"
        )
    archive, folder = parent / PurePosixPath(urlsplit(card.urls[0]).path).name, parent / card.folder
    ours = parent / f".{archive.name}.downloaded"  # marks an archive that was not saved by hand, even after a kill
    if not archive.is_file():
        ours.unlink(missing_ok=True)
        download(card.urls, archive, card.download, progress=progress, mark=ours)
    elif fault := file_fault(archive, card.download):
        raise PointsetError(f"{archive} is not the archive of {card.name}: {fault}: delete it or get it again")
    whole = card.download.md5 or card.download.sha256
    noted = card.kind != "meshes" and whole  # for meshes, the pools sampled from them record digests
    unpack(archive, folder, progress=progress, look=lambda found: note_files(found, folder) if noted else None)
    if ours.exists():
        archive.unlink()
        drop_parts(archive)
        ours.unlink()
    return folder
