"""The sets that a run's options describe, and sets like those of an earlier run."""

from pathlib import Path
from typing import Any

from pointset.configuration import DataOptions
from pointset.data.dataset import AS_RELEASED, PointSets, load_dataset
from pointset.errors import PointsetError


def load_sets(data: str | Path, options: DataOptions) -> tuple[PointSets, PointSets]:
    """The training and the test sets that the options describe."""
    return load_split(data, "train", options), load_split(data, "test", options)


def load_like(description: dict[str, Any], split: str, data: str | Path | None = None) -> PointSets:
    """Another split, or another data set, made into sets like those that `PointSets.describe` tells of.

    Raises:
        PointsetError: the data is not there, or its classes are not those of the description.
    """
    sampler = description["sampler"]
    options = DataOptions(
        points=description["points"],
        pool_points=description["pool"],
        normalize=description["normalize"],
        sampler="uniform" if sampler == AS_RELEASED else sampler,
        data_seed=description["seed"],
        split_seed=description["split_seed"],
        up=description["up"],
    )
    try:
        sets = load_split(data or description["source"], split, options)
    except PointsetError as error:
        if data is None:
            raise PointsetError(f"{error}; if the data of the run has moved, say where it is with --data") from error
        raise
    if sets.classes != description["classes"]:
        odd = sorted(set(sets.classes) ^ set(description["classes"])) or ["their order"]
        raise PointsetError(
            f"{data or description['source']} has other classes than the model was trained on ({', '.join(odd)}): "
            "give data with the same classes"
        )
    return sets


def load_split(data: str | Path, split: str, options: DataOptions) -> PointSets:
    """One split of a card or folder under the options."""
    return load_dataset(
        data,
        split,
        options.points,
        pool_points=options.pool_points,
        normalize=options.normalize,
        sampler=options.sampler,
        seed=options.data_seed,
        split_seed=options.split_seed,
        up=options.up,
    )
