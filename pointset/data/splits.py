"""Cutting a validation set from training shapes."""

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError


def validation_rows(labels: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Choose shapes to hold out, class by class.

    Of a class of c shapes round(fraction * c) are held out, but at least one is not.

    Args:
        labels: [N], from 0.
        fraction: above 0 and below 1.
        seed: which shapes.

    Returns:
        bool [N], True at shapes that are held out.

    Raises:
        PointsetError: the fraction is out of range, or so small that no shape is held out.
    """
    if not 0.0 < fraction < 1.0:
        raise PointsetError(f"fraction={fraction} is no share to hold out: give a number between 0 and 1")
    rng = np.random.default_rng((seed, _VALIDATION_STREAM))
    held_out = np.zeros(len(labels), dtype=bool)
    for label in range(int(labels.max(initial=-1)) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        held_out[members[: min(round(fraction * len(members)), len(members) - 1)]] = True
    if not held_out.any():
        raise PointsetError(f"fraction={fraction} of {len(labels)} shapes holds none out: give a larger fraction")
    return held_out


_VALIDATION_STREAM = 1
"""Keeps the validation cut apart from other uses of the same seed."""
