"""The upward axis of the shapes of a dataset: chosen for its files, and shapes rotated to it."""

import dataclasses
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.axes import USUAL_AXES, Axis, rotate_up, usual_up
from pointset.data.catalogue.cards import Card
from pointset.data.options import DataOptions
from pointset.data.point_cache import PointCache
from pointset.data.readers.formats import SHAPE_SUFFIXES, suffix_of


def with_axis(options: DataOptions, names: Sequence[str], card: Card | None, folder: Path) -> DataOptions:
    """Return options with the upward axis of the files, and the suffixes of those that have it.

    Without one, it is that of the card, or the usual one of the files, with a warning if it is y for some.
    """
    suffixes = {suffix_of(name) for name in names} & SHAPE_SUFFIXES
    if options.up != "auto" or card:
        axis = card.up if card and options.up == "auto" else options.up
        kinds = suffixes if axis == "z" else suffixes - {".dae"}  # which state their axis, and are read with Z up
        options = dataclasses.replace(options, up=axis, kinds=tuple(sorted(kinds)))
        return options if axis in ("y", "z") else dataclasses.replace(options, up="z", files_up=axis)
    up: Axis = usual_up(names) or "z"
    upright = sorted(suffix for suffix in suffixes if USUAL_AXES.get(suffix) == "y")
    if upright:
        assumption, remedy = "y is taken for their upward axis", "give --up y or --up z"
        if up == "z":
            assumption, remedy = "beside others, they are turned to Z up", "give --up z if they have Z up"
        found = f"{folder} holds {' and '.join(upright)} files, which usually have Y up: {assumption}"
        look = f"look at them with `pointset data show {shlex.quote(str(folder))}`"
        warnings.warn(f"{found}; {look}, and {remedy} (in Python up=)", UserWarning, stacklevel=4)
    return dataclasses.replace(options, up=up, kinds=tuple(sorted(suffixes - {*upright} if up == "z" else suffixes)))


def rotated_cache(cache: PointCache, axes: Sequence[str], up: str) -> PointCache:
    """Return the cache whose shapes, each with one of these directions up, are rotated to have this axis up."""
    if {*axes} <= {up}:
        return cache
    columns = cache.columns
    for now in {*axes} - {up}:
        rows = np.repeat([axis == now for axis in axes], cache.sizes)
        for name in {"points", "normals"} & {*columns}:
            flat = np.array(columns[name]).reshape(-1, 3)
            flat[rows] = rotate_up(flat[rows], now, up)
            columns[name] = flat.reshape(columns[name].shape)
    return cache.with_columns(columns)
