"""Read every file of a dataset once, compute the features of all shapes, and list the files that cannot be read."""

import dataclasses
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from pointset.baselines.models import Baseline
from pointset.data.cache.manifest import file_digests
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.catalogue.locate import locate_data
from pointset.data.dataset import list_data, load_split
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError
from pointset.training.baselines import baseline_of, extract_rows, set_pose
from pointset.zoo.models import create_for

POINTS = 1024
"""Number of points per shape from which features are computed."""
CLASSIFIER = "features+surface-svm"
"""Classifier whose features give duplicates, and whose out-of-fold probabilities give label errors."""
TRIED, QUANTILE = 60, 0.95
"""Number of shapes for which two samplings are compared, and the quantile of the distances that is used."""


@dataclass
class Shapes:
    """The shapes of all splits."""

    sets: list[PointSets]
    """The sets of each split that has shapes."""
    files: dict[str, ShapeFile]
    """The files by name; empty for a dataset in its authors' HDF5 or .npy files."""
    failures: dict[str, str]
    """The files that cannot be read, by name, and the reason for each."""
    warnings: list[str]
    """Warnings from listing and reading the folder: which files are skipped, and why."""
    rule: str
    """How shapes are assigned to splits."""

    def __post_init__(self) -> None:
        self.names = [name for sets in self.sets for name in sets.names]
        self.splits = [sets.split for sets in self.sets for _ in sets.names]
        self.labels: Int[ndarray, " N"] = torch.cat([sets.labels for sets in self.sets]).numpy()
        self.classes = self.sets[0].classes

    def whole_cloud(self, row: int) -> Float[ndarray, "n 3"]:
        """Return all points of a cloud, or all points that were sampled from a mesh."""
        sets = next(sets for sets in self.sets if sets.split == self.splits[row])
        return sets.point_cache.cloud(row - self.splits.index(sets.split))

    @cached_property
    def digests(self) -> list[str]:
        """A text for each shape. Files with the same bytes have the same text."""
        return file_digests([self.files[name].path for name in self.names]) if self.files else self.names


def read_shapes(
    name_or_folder: str | Path, *, up: str | None = None, labels: str | None = None, progress: bool = True
) -> Shapes:
    """Read every shape of a dataset card or a folder into point caches, which training also uses.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be read.
    """
    chosen = {"points": POINTS, "normalize": "none", "up": up or "auto", "labels": labels, "on_error": "skip"}
    options, sets, failures = DataOptions.from_dict(chosen), list[PointSets](), dict[str, str]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, folder = locate_data(name_or_folder, progress=progress)
        listing = list_data(folder, options)
        splits = SPLITS if listing is None else sorted(listing.splits, key=lambda split: split != "train")
        for split in splits:
            try:
                loaded = load_split(
                    name_or_folder, split, options, progress=progress, fewer=True, trained=bool(sets), listing=listing
                )
            except UnreadableShapesError as error:
                failures |= error.failures
                continue
            failures |= loaded.point_cache.skipped
            options = dataclasses.replace(loaded.options, points=POINTS)  # keeps the upward axis of the files
            sets.append(loaded)
    if not sets:
        raise PointsetError(f"{folder}: no shape can be read: {next(iter(failures.values()), 'it has no shape')}")
    said = dict.fromkeys(str(each.message) for each in caught)
    of_splits = [] if listing is None else listing.splits.values()
    return Shapes(
        sets,
        {shape.name: shape for shapes in of_splits for shape in shapes},
        failures,
        [text for text in said if " lacks " not in text and "its sets have as many" not in text],
        "as released" if listing is None else listing.rule,
    )


@dataclass(frozen=True)
class Features:
    """Features of N shapes, independent of position and scale."""

    baseline: Baseline
    blocks: list[Tensor]
    """Inputs of the baseline's head, each [N, views, width]."""

    @property
    def vectors(self) -> Float[ndarray, "N width"]:
        """One feature vector per shape."""
        return _joined(self.blocks)

    def sampling_distance(self, sets: PointSets) -> float:
        """Return a distance that two samplings of one shape rarely exceed: a quantile for halves of point clouds."""
        some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:TRIED].tolist()).normalized("none")
        clouds = [cloud[None, :size, :3] for cloud, size in zip(some.points, some.sizes, strict=True)]
        halves = [
            np.concatenate([_joined(self.baseline.blocks(cloud[:, half::2], None)) for cloud in clouds])
            for half in (0, 1)
        ]
        return float(np.quantile(np.linalg.norm(halves[0] - halves[1], axis=1), QUANTILE))


def shape_features(shapes: Shapes, progress: bool) -> Features:
    """Compute the features of all shapes."""
    baseline = baseline_of(create_for(shapes.sets[0], CLASSIFIER))
    assert baseline is not None
    set_pose(baseline, shapes.sets[0])
    of_splits = [extract_rows(baseline, sets, progress) for sets in shapes.sets]
    return Features(baseline, [torch.cat(parts) for parts in zip(*of_splits, strict=True)])


def _joined(blocks: list[Tensor]) -> Float[ndarray, "N width"]:
    return torch.cat([block[:, 0] for block in blocks], dim=1).numpy()
