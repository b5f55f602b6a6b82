"""The check of meshes and clouds before their coordinates are rounded to float32."""

import numpy as np

FLOAT32 = np.finfo(np.float32)
LEAST_STEPS = 2**8
"""Steps of float32 along a shape; with fewer, its form is lost."""


def float32_fault(least: np.ndarray, most: np.ndarray) -> str:
    """Why points between two corners [3] would overflow or coincide in float32; empty if they do not."""
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
