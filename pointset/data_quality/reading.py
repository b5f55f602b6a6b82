"""Read every file of a dataset once: the shapes of all splits, and why files cannot be read."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.data.cache.build import load_cache
from pointset.data.cache.manifest import CacheEntry, CachePlan, Source, read_manifest
from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released, read_released
from pointset.data.options import SPLITS, DataOptions
from pointset.data.orientation import rotated_cache, with_axis
from pointset.data.point_cache import PointCache
from pointset.data.point_sets import PointSets
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError

NONE = Source(-1, -1, None)
"""The source of a file that was not read."""
POINTS = 1024
"""Points of a shape from which features are computed."""


@dataclass
class Shapes:
    """The shapes of all splits."""

    name: str
    sets: list[PointSets]
    """One for each split that has shapes."""
    entries: dict[str, CacheEntry]
    """Entries of the point caches, by file name; empty for a release."""
    warnings: list[str]
    """Warnings of listing the folder: files that are skipped, and why."""
    rule: str
    """How shapes are assigned to splits."""

    def __post_init__(self) -> None:
        self.names = [name for sets in self.sets for name in sets.names]
        self.splits = [sets.split for sets in self.sets for _ in sets.names]
        self.labels: Int[ndarray, " N"] = torch.cat([sets.labels for sets in self.sets]).numpy()
        self.classes = self.sets[0].classes
        self.starts = np.cumsum([0, *map(len, self.sets)])

    def whole_cloud(self, row: int) -> Float[ndarray, "n 3"]:
        """Return all points of one shape; of a mesh, all that were sampled."""
        split = int(np.searchsorted(self.starts, row, side="right")) - 1
        sets, inside = self.sets[split], row - int(self.starts[split])
        return sets.point_cache.cloud(int(sets.rows[inside]))

    def digest(self, row: int) -> str:
        """Return the digest of the file of a shape; another text for each shape of a release."""
        entry = self.entries.get(self.names[row])
        return (entry.source.blake2b if entry else None) or f"{row}"

    @property
    def failures(self) -> dict[str, str]:
        """Reasons why files cannot be read, by name."""
        return {name: entry.skipped for name, entry in self.entries.items() if entry.skipped}


def read_shapes(
    name_or_folder: str | Path, *, up: str | None = None, labels: str | None = None, progress: bool = True
) -> Shapes:
    """Read every shape of a card or a folder, into point caches that training uses, too.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be read.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        card, folder = locate_data(name_or_folder, progress=progress)
        entries: dict[str, CacheEntry] = {}
        caches: dict[str, PointCache] = {}
        rule = "as released"
        if is_released(folder):
            caches = {split: read_released(folder, split, on_error="skip") for split in SPLITS}
        else:
            listing = list_folder(folder, labels=labels)
            rule = listing.rule
            for split in sorted(listing.splits, key=lambda split: split != "train"):
                plan = CachePlan(listing, split, DataOptions())  # as `load_dataset` makes it
                try:
                    caches[split] = load_cache(plan, on_error="skip", progress=progress)
                    entries |= {entry.name: entry for entry in read_manifest(plan.folder).entries}
                except UnreadableShapesError as error:  # none of its files can be read
                    for shape in plan.shapes:
                        reason = error.failures.get(shape.name, "cannot be read")
                        entries[shape.name] = CacheEntry(shape.name, shape.label, str(shape.path), NONE, skipped=reason)
        caches = {split: cache for split, cache in caches.items() if len(cache)}
        if not caches:
            first = next((entry.skipped for entry in entries.values()), "it has no shape")
            raise PointsetError(f"{folder}: no shape can be read: {first}")
        names = [name for cache in caches.values() for name in cache.names]
        options = with_axis(DataOptions.from_dict({"normalize": "none", "up": up or "auto"}), names, card, folder)
    caches = {
        split: rotated_cache(cache, [options.usual_up(name) for name in cache.names], options.up)
        for split, cache in caches.items()
    }
    most = min(POINTS, max(int(cache.sizes.max()) for cache in caches.values()))
    sets = [
        PointSets(cache, options.changed({"points": min(most, int(cache.sizes.max()))}), split=split)
        for split, cache in caches.items()
    ]
    said = [str(each.message) for each in caught if " lacks " not in str(each.message)]
    return Shapes(card.name if card else folder.name, sets, entries, list(dict.fromkeys(said)), rule)
