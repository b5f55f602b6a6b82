"""The number of points of the sets of each training batch, drawn between the bounds of the recipe."""

import math

import numpy as np

from pointset.configuration import SizeRange
from pointset.data.point_sets import PointSets
from pointset.training.recipe import Recipe

_STREAM = 0x51
"""Keeps these draws apart from other uses of the same seed and epoch."""


def bounds(recipe: Recipe, epoch: int, epochs: int, size: int) -> SizeRange | None:
    """The fewest and the most points of sets in an epoch; None if the dataset decides.

    They change from `train_points` to `last_points` by a constant factor per epoch.

    Args:
        recipe: the recipe.
        epoch: number of the epoch, from 0.
        epochs: number of all epochs.
        size: points of an evaluated set, of which `points_share` is a share.
    """
    if recipe.train_points is not None or recipe.points_share is None:
        return _drawn_between(recipe, epoch, epochs)
    points = max(1, round(recipe.points_share * size))
    return points, points


def _drawn_between(recipe: Recipe, epoch: int, epochs: int) -> SizeRange | None:
    first, last = recipe.train_points, recipe.last_points
    if first is None or last is None:
        return first
    passed = epoch / max(1, epochs - 1)
    smallest, largest = (round(a * (b / a) ** passed) for a, b in zip(first, last, strict=True))
    return smallest, largest


def drawn_size(between: SizeRange, seed: int, epoch: int, batch: int) -> int:
    """Points of the sets of a batch: log-uniform between two bounds, both included, from (seed, epoch, batch) alone.

    Sizes of 64 to 128 are as frequent as those of 512 to 1,024; uniform draws would take half as long again.
    """
    smallest, largest = between
    share = np.random.default_rng((seed, epoch, _STREAM, batch)).random()
    return min(largest, int(smallest * ((largest + 1) / smallest) ** share))


def require_sizes(train: PointSets, recipe: Recipe) -> None:
    """Raise a PointsetError if the recipe has more points than any shape."""
    for name, between in (("train_points", recipe.train_points), ("last_points", recipe.last_points)):
        if between is not None:
            train.require(between[1], f"{name}={list(between)} of the recipe", f"--{name.replace('_', '-')} ...")


def usual_size(recipe: Recipe) -> SizeRange | None:
    """The approximate mean number of points over a training, as both bounds: for timing an average step."""
    means = _means(recipe, epochs=9)
    mean = round(sum(means) / max(1, len(means)))
    return (mean, mean) if means else None


def share_of_work(recipe: Recipe, epochs: int) -> float:
    """The share of the work of a training that its first epochs are, in [0, 1]: larger sets take longer."""
    means = _means(recipe, recipe.epochs) or [1.0] * recipe.epochs
    return sum(means[:epochs]) / sum(means)


def _means(recipe: Recipe, epochs: int) -> list[float]:
    """The mean number of points in each epoch; empty if the dataset decides."""
    bounds = [_drawn_between(recipe, epoch, epochs) for epoch in range(epochs)]
    return [
        (most - least) / math.log(most / least) if most > least else float(least)
        for least, most in (between for between in bounds if between is not None)
    ]


def sizes_in_words(recipe: Recipe) -> str:
    """The number of points of training sets as text; empty if it is that of evaluated sets."""
    if recipe.train_points is None:
        part = recipe.points_share or 1
        return "" if part == 1 else f"{part:.3g} of the points"
    ranges = (recipe.train_points, recipe.last_points)
    first, last = (between and "{} to {} points".format(*between) for between in ranges)
    return f"{first}, at the end of {last}" if last else str(first)
