"""What a dataset holds, by class and split, and a few shapes of every class to look at before anything is trained."""

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
POINTS = 512
"""Of a shape that is looked at."""


@dataclass(frozen=True, eq=False)
class Overview:
    """Counts of a dataset, and some of its shapes."""

    name: str
    rule: str
    """How shapes come to their splits."""
    counts: Mapping[str, Mapping[str, int]]
    """Shapes of each class, by split."""
    up: Axis
    assumed: bool
    """Whether the axis is what is usual for the files, and nobody has said it."""
    samples: list[tuple[str, NDArray[np.float32]]]
    """Of every class in turn its name and the points [n, 3] of a shape, at most `PER_CLASS` times."""

    @property
    def classes(self) -> dict[str, int]:
        """Shapes of each class in all splits, the largest class first."""
        totals = Counter[str]()
        for found in self.counts.values():
            totals.update(found)
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def look_at(
    name_or_folder: str | Path, sampling: Sampling, *, split_seed: int = 0, up: str | None = None, progress: bool = True
) -> Overview:
    """Count the shapes of a dataset, and get points of a few of each class: of its pool, if there is one.

    Args:
        name_or_folder: as for `load_dataset`.
        sampling: of the pool; where there is none, the few meshes are sampled.
        split_seed: of the rule that splits a class/file folder.
        up: the upward axis; None or "auto" takes the card's, or what is usual for the files.
        progress: show a bar while a card's data is generated.

    Raises:
        PointsetError: the data is absent or in no known layout, or no file can be used.
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
        raise PointsetError(f"{folder} has no shape that can be used: load it, and each is named with its fault")
    said = up if up in ("y", "z") else card.up if card else None
    axis: Axis = "y" if (said or usual_up(files)) == "y" else "z"
    return Overview(name, rule, counts, axis, said is None, samples)


def _first_split(read: Callable[[str], T]) -> T:
    """Of the training split, or of the test split where there is no other."""
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
        with warnings.catch_warnings():  # of shapes that are left out: the build names them
            warnings.simplefilter("ignore", UserWarning)
            pool = load_pool(plan, on_error="skip", progress=False)
        yield from _of_pool(pool)
        return
    few = Sampling(POINTS) if sampling.points else sampling
    for label, class_name in enumerate(listing.classes):
        results = (make_shape((0, one), few) for one in plan.shapes if one.label == label)
        usable = (one.arrays["points"] for one in results if not one.reason)
        for points in itertools.islice(usable, PER_CLASS):
            yield class_name, points[np.linspace(0, len(points) - 1, min(POINTS, len(points))).astype(np.int64)]
