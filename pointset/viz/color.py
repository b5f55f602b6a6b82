"""Colour scales for light and dark backgrounds, suitable for colour-blind readers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255", "#44aa99")
"""Wong's palette for all kinds of colour vision (Nature Methods 8, 441, 2011), and three more of Tol's."""
INK = "#222222"
FAINT = "#6b6b6b"
LEAST, MOST = 2.0, 64.0
"""Bounds of the reach of a scale, the largest multiple of uniform attention that it shows."""
HOLLOW = "ring: weight exactly 0"
"""The note of a picture with hollow points."""


class Scale(ABC):
    """Interface of colour scales, for panels and colour bars."""

    @abstractmethod
    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The positions of values [...] on the bar, from 0 to 1."""

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The emphasis of values [...], from 0 to 1; points above 0.5 are drawn over the others."""
        return self.positions(values)

    def absent(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """True for the values [...] that have no colour and are drawn as hollow points."""
        return np.zeros(values.shape, bool)

    def ramp(self) -> NDArray[np.float64]:
        """256 colours [256, 3], from the left end of the bar to the right."""
        return attention_ramp()

    def ticks(self) -> tuple[list[float], list[str]]:
        """Positions on the bar, and their labels."""
        return [], []


@dataclass(frozen=True)
class ColorScale(Scale):
    """A logarithmic scale for attention from `1 / reach` to `reach`, with 1 (uniform) in the middle; it clips values.

    Example:
        >>> scale = pointset.viz.ColorScale(10.0)
        >>> scale.positions(np.array([0.1, 1.0, 10.0])).round(2).tolist()
        [0.0, 0.5, 1.0]
    """

    reach: float
    """The multiple of uniform attention at the right end; above 1."""

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The positions of values [...], from 0 to 1; the value 1 has position 0.5."""
        limit = math.log(self.reach)
        logs = np.log(np.clip(values, 1 / self.reach, self.reach))
        return (logs + limit) / (2 * limit)

    def absent(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """True for exact zeros, which sparse weights have."""
        return values == 0

    def ticks(self) -> tuple[list[float], list[str]]:
        """Ticks at powers of two or more, with "1" in the middle."""
        octaves = round(math.log2(self.reach))
        step = max(1, math.ceil(octaves / 3))
        exponents = [step * i for i in range(-(octaves // step), octaves // step + 1)]
        labels = [f"1/{2**-e}" if e < 0 else f"{2**e}" for e in exponents]
        return [(e / octaves + 1) / 2 for e in exponents], labels


@dataclass(frozen=True)
class CountScale(Scale):
    """A linear scale for counts from 0 to `top`; points with a count above 0 are drawn over those with 0."""

    top: int

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The counts divided by `top`, with a gap between 0 and 1."""
        return np.where(values > 0, 0.3 + 0.7 * np.minimum(values / self.top, 1.0), 0.0)

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 for a count of 0, at least 0.65 for larger counts."""
        return np.where(values > 0, 0.65 + 0.35 * np.minimum(values / self.top, 1.0), 0.0)

    def ticks(self) -> tuple[list[float], list[str]]:
        """Ticks at 0, 1 and `top`."""
        counts = [0, self.top] if self.top < 2 else [0, 1, self.top]
        return list(self.positions(np.array(counts, dtype=float))), [f"{count}" for count in counts]


@dataclass(frozen=True)
class HeightScale(Scale):
    """A scale for heights from 0 to 1, which make the shape easier to see."""

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The heights, without the palest colours."""
        return 0.85 * values

    def ramp(self) -> NDArray[np.float64]:
        """256 colours [256, 3]."""
        return colormaps["cividis"](np.linspace(0, 0.92, 256))[:, :3]

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same emphasis for all points."""
        return np.full(values.shape, 0.4)


@dataclass(frozen=True)
class SignedScale(Scale):
    """A linear scale for signed changes from `-reach` to `reach`, purple over grey to orange."""

    reach: float

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The positions of changes; 0 has position 0.5."""
        return np.clip(values / self.reach, -1, 1) / 2 + 0.5

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """An emphasis that grows with the absolute value of the change."""
        return np.clip(np.abs(values) / self.reach, 0, 1) * 0.7 + 0.25

    def ramp(self) -> NDArray[np.float64]:
        """256 colours [256, 3]."""
        # Darker, so that the middle is grey, not the white of the background.
        return 0.88 * colormaps["PuOr_r"](np.linspace(0, 1, 256))[:, :3]

    def ticks(self) -> tuple[list[float], list[str]]:
        """Ticks at both ends and at 0."""
        return [0.0, 0.5, 1.0], [f"{-self.reach:.1g}", "0", f"+{self.reach:.1g}"]


def colors_of(scale: Scale, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """RGB [..., 3] of values [...] on a scale."""
    return scale.ramp()[np.round(scale.positions(values) * 255).astype(int)]


def scale_for(values: NDArray[np.float64]) -> ColorScale:
    """A scale for these values: its reach is a power of two, and about 1 value in 200 is larger."""
    top = float(np.quantile(values, 0.995))
    return ColorScale(2.0 ** math.ceil(math.log2(min(max(top, LEAST), MOST)) - 0.05))


def attention_ramp(dark: bool = False) -> NDArray[np.float64]:
    """256 colours [256, 3] for light paper, or for a dark background, from little attention to much.

    The low end fades into a grey that is just visible, so that points with little attention are not prominent.
    """
    colors = colormaps["magma" if dark else "magma_r"](np.linspace(0.12, 0.97 if dark else 1.0, 256))[:, :3]
    grey = np.maximum(luma(colors), 0.31 if dark else 0.0)[:, None]
    share = 0.8 * np.clip(1 - np.linspace(0, 1, 256) / 0.45, 0, 1)[:, None]
    return (1 - share) * colors + share * grey


def luma(rgb: Any) -> Any:
    """The luma of colours [..., 3] (Rec. 709)."""
    return np.asarray(rgb) @ (0.2126, 0.7152, 0.0722)
