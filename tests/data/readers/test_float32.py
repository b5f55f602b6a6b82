"""Which shapes float32 can represent: by their size, and by their distance from the origin."""

import numpy as np
import pytest

from pointset.data.readers.clouds import FLOAT32, LEAST_STEPS, float32_fault

MOST, LEAST = float(FLOAT32.max), float(FLOAT32.tiny)
STEP = LEAST_STEPS * float(FLOAT32.eps)


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        *[(0, 0, ""), (5, 5, ""), (-1, 1, "")],
        *[(-MOST, 0, ""), (0, MOST, ""), (-MOST, MOST, "")],
        *[(0, 1.001 * MOST, "a coordinate of 3.41e+38, too large"), (-1e39, 0, "a coordinate of 1e+39, too large")],
        *[(0, LEAST, ""), (0, 1e-39, "is 1e-39 long, too small"), (-1e-39, -5e-40, "is 5e-40 long, too small")],
        *[(1000, 1000 * (1 + 1.1 * STEP), ""), (-1000 * (1 + 1.1 * STEP), -1000, "")],
        *[(1000, 1000 * (1 + 0.9 * STEP), "long and 1e+03 away"), (-1000 * (1 + 0.9 * STEP), -1000, "and 1e+03 away")],
    ],
)
@pytest.mark.parametrize("axis", range(3))
def test_a_shape_along_one_axis(least: float, most: float, words: str, axis: int) -> None:
    corners = np.zeros((2, 3))
    corners[:, axis] = least, most
    fault = float32_fault(*corners)
    assert words in fault
    assert bool(words) == bool(fault)
