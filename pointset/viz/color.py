"""Colour scales for light and dark backgrounds, suitable for colour-blind readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

Values = NDArray[np.float64]
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255", "#44aa99")
"""Colours for all kinds of colour vision: seven by Wong (Nature Methods 8, 441, 2011), and three by Tol."""
INK = "#222222"
FAINT = "#6b6b6b"
LEAST, MOST = 2.0, 64.0
"""Minimum and maximum of the reach, which is the largest multiple of uniform attention on a colour scale."""
HOLLOW = "ring: weight exactly 0"
"""The note of a picture with hollow points."""


@dataclass(frozen=True, eq=False)
class Scale:
    """A mapping from the values of points to colours, with a colour bar."""

    positions: Callable[[Values], Values]
    """Function from values to positions on the colour bar, from 0 to 1."""
    colors: Values
    """256 colours [256, 3], from the left end of the bar to the right."""
    emphasis: Callable[[Values], Values]
    """Function from values to emphasis, from 0 to 1. Points with more than 0.5 are drawn over the others."""
    ticks: Sequence[tuple[float, str]] = ()
    """Positions on the bar, with a label for each."""
    has_rings: bool = False
    """True if values of exactly 0, which occur in sparse weights, are drawn as rings without a colour."""

    def colors_of(self, values: Values) -> Values:
        """Return the colours [..., 3] (RGB) of values [...]."""
        return self.colors[np.round(self.positions(values) * 255).astype(int)]

    def rings(self, values: Values) -> NDArray[np.bool_]:
        """Return True for values that are drawn as rings."""
        return (values == 0) & self.has_rings


def attention_scale(reach: float) -> Scale:
    """Return a logarithmic scale for attention from `1 / reach` to `reach`, with 1 (uniform) in the middle."""

    def positions(values: Values) -> Values:
        return np.log(np.clip(values, 1 / reach, reach)) / (2 * math.log(reach)) + 0.5

    octaves = round(math.log2(reach))
    step = max(1, math.ceil(octaves / 3))
    exponents = [step * i for i in range(-(octaves // step), octaves // step + 1)]
    ticks = [((e / octaves + 1) / 2, f"1/{2**-e}" if e < 0 else f"{2**e}") for e in exponents]
    return Scale(positions, attention_ramp(), positions, ticks, has_rings=True)


def reach_of(values: Values) -> float:
    """Return the reach of a scale for attention: a bounded power of two that about 1 value in 200 exceeds."""
    top = float(np.quantile(values, 0.995))
    return float(2.0 ** math.ceil(math.log2(min(max(top, LEAST), MOST)) - 0.05))


def scale_for(values: Values) -> Scale:
    """Return a scale for attention with the reach of these values."""
    return attention_scale(reach_of(values))


def signed_scale(reach: float) -> Scale:
    """Return a linear scale for changes from `-reach` to `reach`, in colours from purple through grey to orange."""
    # The factor darkens the colours, so that the middle is grey and not the white of the background.
    colors = 0.88 * colormaps["PuOr_r"](np.linspace(0, 1, 256))[:, :3]
    return Scale(
        lambda values: np.clip(values / reach, -1, 1) / 2 + 0.5,
        colors,
        emphasis=lambda values: np.clip(np.abs(values) / reach, 0, 1) * 0.7 + 0.25,
        ticks=[(0.0, f"{-reach:.1g}"), (0.5, "0"), (1.0, f"+{reach:.1g}")],
    )


def height_scale() -> Scale:
    """Return a scale for heights from 0 to 1, without the palest colours."""
    colors = colormaps["cividis"](np.linspace(0, 0.92, 256))[:, :3]
    return Scale(lambda values: 0.85 * values, colors, emphasis=lambda values: np.full(values.shape, 0.4))


def attention_ramp(dark: bool = False) -> NDArray[np.float64]:
    """Return colours [256, 3] from little attention (a faint grey) to much, for a white or a dark background."""
    colors = colormaps["magma" if dark else "magma_r"](np.linspace(0.12, 0.97 if dark else 1.0, 256))[:, :3]
    grey = np.maximum(luma(colors), 0.31 if dark else 0.0)[:, None]
    share = 0.8 * np.clip(1 - np.linspace(0, 1, 256) / 0.45, 0, 1)[:, None]
    return (1 - share) * colors + share * grey


def luma(rgb: Any) -> Any:
    """Return the luma of colours [..., 3] (Rec. 709)."""
    return np.asarray(rgb) @ (0.2126, 0.7152, 0.0722)
