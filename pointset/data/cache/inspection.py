"""Inspect a dataset: verify its caches and source files by reading every byte, or count its shapes and load some."""

import glob
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from pointset.data.axes import rotate_up, usual_up
from pointset.data.cache.build import sample_shape
from pointset.data.cache.manifest import read_manifest
from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import home, locate_data
from pointset.data.catalogue.released import is_released, read_released, released_labels
from pointset.data.options import SPLITS, Preparation
from pointset.data.unusable import in_kinds
from pointset.errors import PointsetError, counted

Sample = tuple[str, ndarray]
"""The class of a shape, and some of its points [n, 3]."""
PER_CLASS = 4
"""Number of sample shapes per class."""
SAMPLE_POINTS = 512
"""Number of points of a sample shape."""


@dataclass(frozen=True)
class Verified:
    """Result of verifying one cache, or the downloaded files of a published dataset."""

    folder: Path
    shapes: int
    skipped: int
    problems: tuple[str, ...]
    what: str = "shapes"
    """Plural noun for what was verified: "shapes" of a cache, or "files" of a published dataset."""


def verify_dataset(name_or_folder: str | Path, *, progress: bool = True) -> list[Verified]:
    """Verify all caches of a dataset, or the downloaded files of a published dataset, by their digests."""
    card, root = locate_data(name_or_folder, progress=progress)
    if is_released(root):
        if card is None or not card.files:
            raise PointsetError(f"{root} cannot be verified: the digests of its files are not known")
        faults = tuple(fault for name in card.files if (fault := card.fault_of(root, name)))
        return [Verified(root, len(card.files), 0, faults, "files")]
    folders = sorted((home() / "cache").glob(f"{glob.escape(root.name)}-*-{'?' * 16}"))
    verified = [result for folder in folders if (result := verify_cache(folder, root, progress=progress))]
    if not verified:
        raise PointsetError(
            f"{name_or_folder} has no point cache in {home() / 'cache'}: it is built when the data is used"
        )
    return verified


def verify_cache(folder: Path, root: Path, *, progress: bool = True) -> Verified | None:
    """Compare a cache and its source files with its manifest; None if it is no cache of the folder `root`."""
    try:
        manifest = read_manifest(folder)
        if manifest.folder != str(root):
            return None
        problems = tuple(manifest.faults(folder, progress))
    except PointsetError as error:
        return Verified(folder, 0, 0, (str(error),))
    return Verified(folder, len(manifest.kept), len(manifest.failures), problems)


def look_at(
    name_or_folder: str | Path, *, up: str | None = None, labels: str | None = None
) -> tuple[dict[str, Any], list[Sample]]:
    """Count the shapes of a dataset, and load points of `PER_CLASS` random shapes of each class.

    If `up` is None or "auto", "up" in the result is the axis on the card. Without a card, it is the usual axis of the
    file format, and "up_assumed" is True. Points have Y up if "up" is y, otherwise Z up.
    """
    card, folder = locate_data(name_or_folder)
    known = (card.up if card else None) if up in (None, "auto") else up
    if is_released(folder):
        of_split = {split: released_labels(folder, split).tolist() for split in SPLITS}
        first = "test" if of_split["test"] and not of_split["train"] else "train"
        cache = read_released(folder, first, on_error="skip")
        classes, rule, files, axis = cache.classes, "as released", list[str](), known or "z"
        samples = [*_samples(classes, cache.labels.tolist(), lambda row: _standing(cache.cloud(row), axis, axis))]
    else:
        listing = list_folder(folder, labels=labels)
        shapes = listing.splits.get("train") or next(iter(listing.splits.values()))
        of_split = {split: [shape.label for shape in listing.splits[split]] for split in sorted(listing.splits)}
        classes, rule, files = listing.classes, listing.rule, [shape.name for shape in shapes]
        preparation = Preparation(cache_points=SAMPLE_POINTS)
        failures, remarks = dict[str, str](), dict[str, str]()
        axis = known or usual_up(files) or "z"

        def cloud(row: int) -> ndarray | None:
            entry, arrays = sample_shape(shapes[row], listing.kind, preparation, seed=0)
            if entry.skipped:
                failures[entry.name] = entry.skipped
                return None
            remarks.update({entry.name: entry.remarks} if entry.remarks else {})
            return _standing(arrays["points"], known or usual_up([entry.name]) or axis, axis)

        samples = [*_samples(classes, [shape.label for shape in shapes], cloud)]
        if failures:
            warnings.warn(
                f"{counted(len(failures), 'file')} cannot be used: {in_kinds(failures)}", UserWarning, stacklevel=2
            )
        if remarks:
            warnings.warn(in_kinds(remarks), UserWarning, stacklevel=2)
    if not samples:
        raise PointsetError(f"{folder} has no shape that can be used: load it to see the fault of each")
    counts = Counter(classes[label] for values in of_split.values() for label in values)
    overview = {
        "name": card.name if card else folder.name,
        "classes": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        "splits": {split: len(values) for split, values in of_split.items() if values},
        "split_rule": rule,
        "up": axis,
        "up_assumed": known is None,
        "up_differs": known is None and len({usual_up([file]) or "z" for file in files}) > 1,
    }
    return overview, samples


def _standing(points: ndarray, now: str, up: str) -> ndarray:
    """Return points with Y up if `up`, the axis of the dataset, is y, otherwise with Z up."""
    return rotate_up(points, now, "y" if up == "y" else "z")


def _samples(classes: Sequence[str], labels: Sequence[int], cloud: Callable[[int], ndarray | None]) -> Iterator[Sample]:
    """Yield points of some random usable shapes of each class; `cloud` returns None for an unusable shape."""
    seen = Counter[int]()
    order = np.random.default_rng(0).permutation(len(labels)).tolist()
    for row in sorted(order, key=lambda row: labels[row]):
        if seen[labels[row]] < PER_CLASS and (points := cloud(row)) is not None:
            seen[labels[row]] += 1
            spread = np.linspace(0, len(points) - 1, min(SAMPLE_POINTS, len(points))).astype(np.int64)
            yield classes[labels[row]], points[spread]
