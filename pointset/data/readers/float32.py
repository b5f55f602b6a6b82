"""Check that float32 can represent the coordinates of a mesh or cloud."""

import numpy as np

FLOAT32 = np.finfo(np.float32)
LEAST_STEPS = 2**8
"""Minimum number of float32 steps along a shape, below which rounding would destroy its form."""


def float32_fault(least: np.ndarray, most: np.ndarray) -> str:
    """The fault of points with this bounding box that would overflow or coincide in float32; "" if there is none."""
    greatest = float(max(-least.min(), most.max()))
    if greatest > float(FLOAT32.max):
        return f"has a coordinate of {greatest:.3g}, too large for float32: scale it down"
    size = float((most - least).max())
    if 0 < size < float(FLOAT32.tiny):
        return f"is {size:.3g} long, too small for float32: scale it up"
    if 0 < size < LEAST_STEPS * float(FLOAT32.eps) * greatest:
        return (
            f"is {size:.3g} long and {greatest:.3g} away from the origin, where float32 cannot show its shape: move it "
            "to the origin"
        )
    return ""
