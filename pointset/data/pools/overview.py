"""Count the shapes of a dataset by class and split, and load a few shapes of every class for a first look."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pointset.data.axes import usual_up
from pointset.data.catalogue.folders import Listing, list_folder
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released, read_released, released_labels
from pointset.data.pool import Pool
from pointset.data.pools.build import SPLITS
from pointset.data.pools.plan import Sampling
from pointset.data.pools.shapes import make_shape
from pointset.errors import PointsetError

T = TypeVar("T")
Sample = tuple[str, NDArray[np.float32]]
"""The class of a shape, and some of its points [n, 3]."""
PER_CLASS = 4
"""Most sample shapes per class."""
POINTS = 512
"""Points of a sample shape."""


def look_at(
    name_or_folder: str | Path, *, split_seed: int = 0, up: str | None = None, progress: bool = True
) -> tuple[dict[str, Any], list[Sample]]:
    """Count the shapes of a dataset, and load points of at most `PER_CLASS` shapes per class.

    `up` None or "auto" means the axis of the card, or the usual one of the file format, which is then "up_assumed".

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be used.
    """
    card, folder = locate_data(name_or_folder, progress=progress)
    if is_released(folder):
        pool = _first_split(lambda split: read_released(folder, split, card=card, on_error="skip"))
        labels = {split: released_labels(folder, split).tolist() for split in SPLITS}
        if not any(labels.values()):
            labels = {"test": pool.labels.tolist()}
        classes, rule, files, samples = pool.classes, "as released", [], list(_of_pool(pool))
    else:
        listing = _first_split(lambda split: list_folder(folder, split, seed=split_seed))
        listings = {split: list_folder(folder, split, seed=split_seed) for split in sorted(listing.present)}
        labels = {split: [shape.label for shape in other.shapes] for split, other in listings.items()}
        classes, rule, files = listing.classes, listing.rule, [shape.name for shape in listing.shapes]
        samples = list(_of_files(listing))
    if not samples:
        raise PointsetError(f"{folder} has no shape that can be used: load it to see the fault of each")
    counts = Counter(classes[label] for values in labels.values() for label in values)
    known = up if up in ("y", "z") else card.up if card else None
    overview = {
        "name": card.name if card else folder.name,
        "classes": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        "splits": {split: len(values) for split, values in labels.items() if values},
        "split_rule": rule,
        "up": "y" if (known or usual_up(files)) == "y" else "z",
        "up_assumed": known is None,
    }
    return overview, samples


def _first_split(read: Callable[[str], T]) -> T:
    """Read the training split or, if that fails, the test split."""
    try:
        return read(SPLITS[0])
    except PointsetError as error:
        try:
            return read(SPLITS[1])
        except PointsetError:
            raise error from None


def _of_pool(pool: Pool) -> Iterator[Sample]:
    for label, name in enumerate(pool.classes):
        for row in np.flatnonzero(pool.labels == label)[:PER_CLASS].tolist():
            yield name, _some(pool.cloud(row))


def _of_files(listing: Listing) -> Iterator[Sample]:
    sampling = Sampling.none(False) if listing.kind == "clouds" else Sampling(POINTS)
    for label, name in enumerate(listing.classes):
        results = (make_shape((0, shape), sampling) for shape in listing.shapes if shape.label == label)
        usable = (arrays["points"] for _, entry, arrays in results if not entry.skipped)
        for points in itertools.islice(usable, PER_CLASS):
            yield name, _some(points)


def _some(points: NDArray[np.float32]) -> NDArray[np.float32]:
    return points[np.linspace(0, len(points) - 1, min(POINTS, len(points))).astype(np.int64)]
