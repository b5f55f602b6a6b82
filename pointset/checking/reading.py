"""Read every file of a data set once: the shapes of all splits side by side, and what could not be read."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.data.catalogue.folders import list_to_look
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released, read_released
from pointset.data.dataset import on_one_axis, with_axis
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.pool import Pool
from pointset.data.pools.build import PoolPlan, load_pool
from pointset.data.pools.manifest import PoolEntry, Sampling, Source, read_manifest
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError

NONE = Source(-1, -1, None)
"""The source of a file that was not read."""
POINTS = 1024
"""Points of a shape that are compared."""


@dataclass
class Shapes:
    """The shapes of all splits."""

    name: str
    sets: list[PointSets]
    """One for each split that has shapes."""
    entries: dict[str, PoolEntry]
    """What the pools know of each file, by its name; empty for a release."""
    warnings: list[str]
    """What was said while the folder was listed: files that are left out, and why."""
    rule: str
    """How shapes are assigned to splits."""

    def __post_init__(self) -> None:
        self.names = [name for sets in self.sets for name in sets.names]
        self.splits = [sets.split for sets in self.sets for _ in sets.names]
        self.labels: Int[ndarray, " N"] = torch.cat([sets.labels for sets in self.sets]).numpy()
        self.classes = self.sets[0].classes
        self.starts = np.cumsum([0, *map(len, self.sets)])

    def cloud(self, row: int) -> Float[ndarray, "n 3"]:
        """Points of one shape, in its file's own units and axes."""
        sets, inside = self._place(row)
        return sets.points[inside, : sets.sizes[inside], :3].numpy()

    def whole_cloud(self, row: int) -> Float[ndarray, "n 3"]:
        """All points of one shape; of a mesh, all that were sampled."""
        sets, inside = self._place(row)
        return sets.source_pool.cloud(int(sets.rows[inside]))

    def _place(self, row: int) -> tuple[PointSets, int]:
        """The sets in which a shape is, and its index among them."""
        split = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.sets[split], row - int(self.starts[split])

    @property
    def counts(self) -> Int[ndarray, " N"]:
        """Points of each shape in its file; of meshes, of its sampling."""
        return np.concatenate([sets.source_pool.sizes[sets.rows.numpy()] for sets in self.sets])

    @property
    def failures(self) -> dict[str, str]:
        """Why files could not be read, by name."""
        return {name: entry.skipped for name, entry in self.entries.items() if entry.skipped}


def read_shapes(name_or_folder: str | Path, *, up: str | None = None, progress: bool = True) -> Shapes:
    """Read every shape of a card or a folder, in processes; what an earlier call has read is not read again.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be read.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        card, folder = locate_data(name_or_folder, progress=progress)
        entries: dict[str, PoolEntry] = {}
        pools: dict[str, Pool] = {}
        rule = "as released"
        if is_released(folder):
            pools = {split: read_released(folder, split, on_error="skip") for split in SPLITS}
        else:
            listings = list_to_look(folder)
            rule = next(iter(listings.values())).rule
            for split in sorted(listings, key=lambda split: split != "train"):
                listing = listings[split]
                plan = PoolPlan(listing, Sampling.of(listing.kind, DataOptions()))  # as `load_dataset` makes it
                try:
                    pools[split] = load_pool(plan, on_error="skip", progress=progress)
                    entries |= {entry.name: entry for entry in read_manifest(plan.folder).entries}
                except UnreadableShapesError as error:  # none of its files can be read
                    for shape in listing.shapes:
                        reason = error.failures.get(shape.name, "cannot be read")
                        entries[shape.name] = PoolEntry(shape.name, shape.label, str(shape.path), NONE, skipped=reason)
        pools = {split: pool for split, pool in pools.items() if len(pool)}
        if not pools:
            first = next((entry.skipped for entry in entries.values()), "it has no shape")
            raise PointsetError(f"{folder}: no shape can be read: {first}")
        names = [name for pool in pools.values() for name in pool.names]
        options = with_axis(DataOptions.from_dict({"normalize": "none", "up": up}), names, card, folder)
    pools = {split: on_one_axis(pool, options) for split, pool in pools.items()}
    most = min(POINTS, max(int(pool.sizes.max()) for pool in pools.values()))
    sets = [
        PointSets(pool, options.changed({"points": min(most, int(pool.sizes.max()))}), split=split)
        for split, pool in pools.items()
    ]
    said = [str(each.message) for each in caught if " lacks " not in str(each.message)]
    return Shapes(card.name if card else folder.name, sets, entries, list(dict.fromkeys(said)), rule)
