"""Find the folder of all datasets and caches, and the folder of a named dataset."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pointset.data.catalogue.cards import Card, did_you_mean, list_cards, load_card
from pointset.data.shapes10 import build_shapes10, is_current
from pointset.errors import REPEATED, PointsetError, described, one_line, quoted
from pointset.runs.atomic import locked, why_not


def home() -> Path:
    """Return the folder that contains `datasets` and the point `cache`: `POINTSET_HOME` or `~/.cache/pointset`."""
    chosen = os.environ.get("POINTSET_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "pointset"


def make_folder(folder: Path) -> Path:
    """Create a folder and its parents; raise a PointsetError if the folder cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # fails if the folder is read-only, or the disk full
            pass
    except OSError as error:
        reason = why_not(folder / "file", error)
        raise PointsetError(f"cannot write to {folder} ({reason}): set POINTSET_HOME to another folder") from error
    return folder


def locate_data(name_or_folder: str | Path, *, progress: bool = True) -> tuple[Card | None, Path]:
    """Return the card (None for a folder) and the folder of a dataset; "shapes10" is generated on first use."""
    name = str(name_or_folder)
    if not isinstance(name_or_folder, str | Path):
        got = f"got {described(name_or_folder)}: save clouds in memory as files, such as class/1.npy"
        raise PointsetError(f"data must be the name of a dataset or a folder, {got}")
    if not name.strip():
        raise PointsetError("the name of the data is empty: give the name of a dataset, or a folder")
    if isinstance(name_or_folder, str) and name in list_cards():
        card = load_card(name)
        return card, _card_folder(card, progress)
    folder = Path(name_or_folder).expanduser()
    if folder.is_dir():
        return None, folder.resolve()
    if folder.is_file():
        raise PointsetError(
            f"{quoted(name)} is a file: give the folder of a dataset (unpack an archive first), or a dataset's name"
        )
    raise PointsetError(f"{quoted(name)} is neither a folder nor the name of a dataset: {did_you_mean(name)}")


def check_against_card(
    classes: list[str], shapes: int | None, card: Card | None, split: str, folder: Path, variant: str | None = None
) -> None:
    """Raise a PointsetError unless classes and number of shapes are those of the card, so that results are comparable.

    The card gives the number of shapes of the first variant, or of every variant if there is only a test split. The
    number is not compared for other variants, or if `shapes` is None.
    """
    if card is None:
        return
    remedy = "unpack the data again, or give the path of the folder to use it as it is"
    if card.kind == "generated":
        remedy = "delete that folder, and it will be generated again"
    require_classes(classes, card.classes, str(folder), card.name, remedy)
    other = variant not in (None, *card.variants[:1]) and "train" in card.splits
    expected = shapes if other else card.splits.get(split, shapes)
    if shapes is not None and expected != shapes:
        raise PointsetError(f"{folder} has {shapes} {split} shapes where {card.name} has {expected}: {remedy}")


def require_classes(present: Sequence[str], wanted: Sequence[str], name: str, than: str, remedy: str) -> None:
    """Raise a PointsetError unless the classes `present` and `wanted` are the same, in the same order."""
    if list(present) != list(wanted):
        sides = {"missing": {*wanted} - {*present}, "unknown": {*present} - {*wanted}}
        differences = [
            f"{side}: {one_line(', '.join(sorted(names)), REPEATED)}" for side, names in sides.items() if names
        ]
        difference = "; ".join(differences) or "their order"
        raise PointsetError(f"{name} has other classes than {than} ({difference}): {remedy}")


def _card_folder(card: Card, progress: bool) -> Path:
    parent = home() / "datasets"
    if card.kind == "generated":  # by one process; the others wait
        if not is_current(folder := parent / card.name):
            make_folder(parent)
            with locked(parent / f"{card.name}.lock"):
                build_shapes10(folder, progress=progress)
        return folder
    if present := present_folder(card):
        return present
    source = card.instructions
    if card.urls:
        source = f"run `pointset data fetch {card.name}`, or unpack {card.urls[0]} there"
    raise PointsetError(
        f"the data of {card.name} is not in {parent}: {source}, which must give {parent / card.folder}, or give the "
        "path of your copy of the data"
    )


def present_folder(card: Card) -> Path | None:
    """Return the folder with a card's data, or None. Its name is that of the card or of the folder in the archive."""
    folders = [home() / "datasets" / name for name in (card.name, card.folder)]
    return next((folder for folder in folders if folder.is_dir() and any(folder.iterdir())), None)
