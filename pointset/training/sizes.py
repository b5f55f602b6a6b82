"""How many points the sets of each training batch have, where the recipe says between which bounds."""

import math

import numpy as np

from pointset.configuration import SizeRange
from pointset.data.point_sets import PointSets
from pointset.training.recipe import Recipe

_STREAM = 0x51
"""Keeps these draws apart from other uses of the same seed and epoch."""


def bounds(recipe: Recipe, epoch: int, epochs: int, size: int) -> SizeRange | None:
    """The fewest and the most points in an epoch, from 0, of so many; None where the dataset decides.

    They go from `points` to `last_points` in equal factors: a half-way epoch has the geometric mean of the two. A share
    is that of `size`, the points of an evaluated set.
    """
    if recipe.points is not None or recipe.points_share is None:
        return _drawn_between(recipe, epoch, epochs)
    points = max(1, round(recipe.points_share * size))
    return points, points


def _drawn_between(recipe: Recipe, epoch: int, epochs: int) -> SizeRange | None:
    first, last = recipe.points, recipe.last_points
    if first is None or last is None:
        return first
    passed = epoch / max(1, epochs - 1)
    smallest, largest = (round(a * (b / a) ** passed) for a, b in zip(first, last, strict=True))
    return smallest, largest


def drawn_size(between: SizeRange, seed: int, epoch: int, batch: int) -> int:
    """Points of the sets of one batch: log-uniform between two bounds, both included, from (seed, epoch, batch) alone.

    Every doubling of the size is as likely as any other: a training on 64 to 1,024 points sees 64 to 128 as often as
    512 to 1,024, and takes a third less time than with uniform draws.
    """
    smallest, largest = between
    share = np.random.default_rng((seed, epoch, _STREAM, batch)).random()
    return min(largest, int(smallest * ((largest + 1) / smallest) ** share))


def require_sizes(train: PointSets, recipe: Recipe) -> None:
    """Raise a PointsetError where the recipe asks for more points than any shape has."""
    for name, between, flag in (
        ("points", recipe.points, "train-points"),
        ("last_points", recipe.last_points, "last-points"),
    ):
        if between is not None:
            train.require(between[1], f"{name}={list(between)} of the recipe", f"--{flag} ...")


def usual_size(recipe: Recipe) -> SizeRange | None:
    """The mean number of points over a training, about, as both bounds: a step of this size takes what they all do."""
    means = _means(recipe, epochs=9)
    mean = round(sum(means) / max(1, len(means)))
    return (mean, mean) if means else None


def share_of_work(recipe: Recipe, epochs: int) -> float:
    """How much of the training the first so many epochs are, in [0, 1]: those with larger sets take longer."""
    means = _means(recipe, recipe.epochs) or [1.0] * recipe.epochs
    return sum(means[:epochs]) / sum(means)


def _means(recipe: Recipe, epochs: int) -> list[float]:
    """The mean number of points in each of so many epochs; empty where the dataset decides."""
    bounds = [_drawn_between(recipe, epoch, epochs) for epoch in range(epochs)]
    return [
        (most - least) / math.log(most / least) if most > least else float(least)
        for least, most in (between for between in bounds if between is not None)
    ]


def sizes_in_words(recipe: Recipe) -> str:
    """How many points training sets have, where these are not as many as those of evaluated sets."""
    if recipe.points is None:
        part = recipe.points_share or 1
        return "" if part == 1 else f"{part:.3g} of the points"
    first, last = (between and "{} to {} points".format(*between) for between in (recipe.points, recipe.last_points))
    return f"{first}, at the end of {last}" if last else str(first)
