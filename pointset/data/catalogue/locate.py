"""From the name of a dataset to the folder that holds it."""

import shutil
from pathlib import Path

from pointset.data.catalogue.cards import Card, list_cards, load_card, nearest_cards
from pointset.data.catalogue.home import datasets_home, disk_errors_told, locked, make_folder
from pointset.data.shapes10 import build_shapes10, is_current
from pointset.errors import REPEATED, PointsetError, one_line, quoted


def locate_data(name_or_folder: str | Path, *, progress: bool = True) -> tuple[Card | None, Path]:
    """The card, if a text names one, and the folder of a dataset; the embedded one is built at first use.

    Raises:
        PointsetError: no card and no folder has the name, or the card's data is not in its place.
    """
    name = str(name_or_folder)
    if isinstance(name_or_folder, str) and name in list_cards():
        card = load_card(name)
        return card, _card_folder(card, progress)
    folder = Path(name_or_folder).expanduser()
    if folder.is_dir():
        return None, folder.resolve()
    if folder.is_file():
        raise PointsetError(f"{quoted(name)} is a file: give the folder of a dataset, or the name of one")
    near = ", ".join(nearest_cards(name))
    raise PointsetError(f"{quoted(name)} is neither a folder nor the name of a dataset: did you mean {near}?")


def check_against_card(
    classes: list[str], shapes: int | None, card: Card | None, split: str, folder: Path, variant: str | None = None
) -> None:
    """Require the classes and the number of shapes of a card, so that results can be compared with others.

    The card's numbers are those of its first variant, and of every variant where it has only a test split. They are
    not compared where `shapes` is None.
    """
    if card is None:
        return
    remedy = "unpack it again, or give the folder itself to use what is there"
    if card.kind == "generated":
        remedy = "delete that folder, and it will be built again"
    if classes != list(card.classes):
        odd = sorted(set(classes) ^ set(card.classes)) or ["their order"]
        raise PointsetError(
            f"{folder} has other classes than {card.name} ({one_line(', '.join(odd), REPEATED)}): {remedy}"
        )
    other = variant not in (None, *card.variants[:1]) and "train" in card.splits
    expected = shapes if other else card.splits.get(split, shapes)
    if shapes is not None and expected != shapes:
        raise PointsetError(f"{folder} has {shapes} {split} shapes where {card.name} has {expected}: {remedy}")


def _card_folder(card: Card, progress: bool) -> Path:
    parent = datasets_home()
    if card.kind == "generated":
        return _generated(parent / card.name, progress)
    folder = present_folder(card)
    if folder is not None:
        return folder
    source = card.instructions
    if card.urls:
        source = f"run `pointset data fetch {card.name}`, or unpack {card.urls[0]} there"
    raise PointsetError(
        f"the data of {card.name} is not in {parent}: {source}, so that it makes {parent / card.folder}, or give the "
        "folder where you have it"
    )


def present_folder(card: Card) -> Path | None:
    """The folder with a card's data, under the card's name or its archive's folder name; None if it is absent."""
    folders = [datasets_home() / name for name in (card.name, card.folder)]
    return next((folder for folder in folders if folder.is_dir() and any(folder.iterdir())), None)


def _generated(folder: Path, progress: bool) -> Path:
    """Build the embedded dataset, unless this version has built it; a second process waits."""
    if not is_current(folder):
        make_folder(folder.parent)
        with disk_errors_told(folder.parent), locked(folder):
            for left in folder.parent.glob(f".{folder.name}-*"):  # of a build that was killed
                shutil.rmtree(left, ignore_errors=True)
            build_shapes10(folder, progress=progress)
    return folder
