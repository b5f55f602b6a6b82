"""Find shapes that no model can be trained on: not finite, or far too large."""

import numpy as np

from pointset.data.point_sets import PointSets
from pointset.errors import quoted

LARGEST = 1e4
"""Largest coordinate on which a model can be expected to train without normalisation."""


def first_fault(sets: PointSets) -> str:
    """The message for the first shape that would spoil a training, "" if there is none. Reads every point."""
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
