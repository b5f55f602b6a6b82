"""Count the shapes of a dataset by class and split, and load a few shapes of every class for a first look."""

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pointset.data.axes import Axis, usual_up
from pointset.data.catalogue.folders import Listing, list_folder
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released, read_released, released_labels
from pointset.data.pool import Pool
from pointset.data.pools.build import SPLITS
from pointset.data.pools.plan import Plan, Sampling
from pointset.data.pools.shapes import make_shape
from pointset.data.pools.store import load_pool
from pointset.errors import PointsetError

T = TypeVar("T")
PER_CLASS = 4
"""Most sample shapes per class."""
POINTS = 512
"""Points of a sample shape."""


@dataclass(frozen=True, eq=False)
class Overview:
    """Counts and sample shapes of a dataset."""

    name: str
    rule: str
    """How shapes are assigned to splits."""
    counts: Mapping[str, Mapping[str, int]]
    """Number of shapes of each class, by split."""
    up: Axis
    assumed: bool
    """True if the upward axis was guessed from the file format."""
    samples: list[tuple[str, NDArray[np.float32]]]
    """Pairs (class, points [n, 3]), class by class, with at most `PER_CLASS` shapes per class."""

    @property
    def classes(self) -> dict[str, int]:
        """Number of shapes of each class in all splits, largest first."""
        totals = Counter[str]()
        for found in self.counts.values():
            totals.update(found)
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def look_at(
    name_or_folder: str | Path, sampling: Sampling, *, split_seed: int = 0, up: str | None = None, progress: bool = True
) -> Overview:
    """Count the shapes of a dataset, and load points of a few shapes per class.

    Args:
        name_or_folder: as for `load_dataset`.
        sampling: sampling of the pool that is read, if it exists; otherwise only the few shapes are sampled.
        split_seed: seed of the rule that splits a class/file folder.
        up: the upward axis; None or "auto" means the card's, or the usual one of the file format.
        progress: show a bar while the embedded dataset is generated.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be used.
    """
    card, folder = locate_data(name_or_folder, progress=progress)
    name = card.name if card else folder.name
    if is_released(folder):
        pool = _first_split(lambda split: read_released(folder, split, card=card, on_error="skip"))
        labels = {split: released_labels(folder, split) for split in SPLITS}
        counts = {split: _count(pool.classes, found.tolist()) for split, found in labels.items() if len(found)}
        counts, rule, files = counts or {"test": _count(pool.classes, pool.labels.tolist())}, "as released", []
        samples = list(_of_pool(pool))
    else:
        listing = _first_split(lambda split: list_folder(folder, split, seed=split_seed))
        listings = {split: list_folder(folder, split, seed=split_seed) for split in sorted(listing.present)}
        counts = {split: _count(one.classes, [shape.label for shape in one.shapes]) for split, one in listings.items()}
        rule, files = listing.rule, [shape.name for shape in listing.shapes]
        samples = list(_of_files(listing, f"{folder.name}-{listing.shapes[0].split}", sampling))
    if not samples:
        raise PointsetError(f"{folder} has no shape that can be used: load it to see the fault of each")
    said = up if up in ("y", "z") else card.up if card else None
    axis: Axis = "y" if (said or usual_up(files)) == "y" else "z"
    return Overview(name, rule, counts, axis, said is None, samples)


def _first_split(read: Callable[[str], T]) -> T:
    """Read the training split or, if that fails, the test split."""
    try:
        return read(SPLITS[0])
    except PointsetError:
        try:
            return read(SPLITS[1])
        except PointsetError:
            pass
        raise


def _count(classes: list[str], labels: list[int]) -> dict[str, int]:
    found = Counter(labels)
    return {name: found[label] for label, name in enumerate(classes) if found[label]}


def _of_pool(pool: Pool) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for label, name in enumerate(pool.classes):
        for row in np.flatnonzero(pool.labels == label)[:PER_CLASS].tolist():
            places = np.linspace(0, pool.sizes[row] - 1, min(POINTS, int(pool.sizes[row]))).astype(np.int64)
            yield name, pool.take(pool.starts[row] + places)


def _of_files(listing: Listing, name: str, sampling: Sampling) -> Iterator[tuple[str, NDArray[np.float32]]]:
    if listing.kind == "clouds":
        sampling = Sampling.none(False)
    plan = Plan.of(name, listing, sampling)
    if plan.folder.is_dir():
        with warnings.catch_warnings():  # shapes that are left out were reported by the build
            warnings.simplefilter("ignore", UserWarning)
            pool = load_pool(plan, on_error="skip", progress=False)
        yield from _of_pool(pool)
        return
    few = Sampling(POINTS) if sampling.points else sampling
    for label, class_name in enumerate(listing.classes):
        results = (make_shape((0, shape), few) for shape in plan.shapes if shape.label == label)
        usable = (arrays["points"] for _, entry, arrays in results if not entry.skipped)
        for points in itertools.islice(usable, PER_CLASS):
            yield class_name, points[np.linspace(0, len(points) - 1, min(POINTS, len(points))).astype(np.int64)]
