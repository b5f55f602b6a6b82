"""Split shapes into training and validation."""

import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check_seed
from pointset.errors import PointsetError
from pointset.inputs import check_kind

_VALIDATION_STREAM = 1
"""Makes the random numbers of the split independent of other uses of the same seed."""


def validation_rows(labels: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Mask bool [N], True at the shapes held out for validation; see `PointSets.split_validation`."""
    check_kind("fraction", fraction, float)
    check_seed(seed)
    if not 0.0 < fraction < 1.0:
        raise PointsetError(f"fraction must be in (0, 1), got {fraction}")
    rng = np.random.default_rng((seed, _VALIDATION_STREAM))
    held_out = np.zeros(len(labels), dtype=bool)
    for label in range(int(labels.max(initial=-1)) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        held_out[members[: min(round(fraction * len(members)), len(members) - 1)]] = True
    if not held_out.any():
        raise PointsetError(f"fraction={fraction} of {len(labels)} shapes holds out no shape: give a larger fraction")
    return held_out
