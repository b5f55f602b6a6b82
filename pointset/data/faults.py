"""What no model can make something of: no data set, and shapes that are not finite or far too large."""

from typing import Any

import numpy as np

from pointset.data.point_sets import PointSets
from pointset.errors import quoted
from pointset.inputs import InputError, described

LARGEST = 1e4
"""Of coordinates that a model may be expected to train on without a normalisation."""


def check_sets(data: Any, name: str = "data") -> None:
    """Refuse, with an InputError, what is no data set of this package, such as a tensor of points."""
    if not isinstance(data, PointSets):
        raise InputError(f"{name} must be sets, as pointset.load_dataset loads them, got {described(data)}")


def first_fault(sets: PointSets) -> str:
    """The first shape that spoils a training, and what to do about it; empty if there is none. Reads every point."""
    pool = sets.source_pool
    for name, row in zip(sets.names, sets.rows.tolist(), strict=True):
        points = pool.take(pool.starts[row] + np.arange(pool.sizes[row]))
        if not np.isfinite(points).all():
            return f"shape {quoted(name)} has a coordinate that is not finite: correct it, or leave the shape out"
        largest = float(np.abs(points).max(initial=0.0))
        if sets.options.normalize == "none" and largest > LARGEST:
            return (
                f"shape {quoted(name)} has coordinates of {largest:.3g}, and they are not normalised: choose normalize "
                "'unit-sphere' or 'standardize'"
            )
    return ""
