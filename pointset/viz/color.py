"""Colour scales for white paper and all kinds of colour vision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Colormap
from numpy.typing import NDArray

from pointset.errors import PointsetError, quoted

Paper = Literal["light", "dark"]
LEAST, MOST = 2.0, 64.0
"""Bounds of a scale's reach, the largest factor over uniform that it shows."""
DEFAULT = "magma_r"
HOLLOW = "ring: weight exactly 0"
"""What a picture says of points without a colour."""


class Scale(ABC):
    """What panels and colour bars need of a scale."""

    name: str
    """A matplotlib colour map."""

    @abstractmethod
    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values [...] fall on the bar, from 0 to 1."""

    @abstractmethod
    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How prominent values [...] are, from 0 to 1; above 0.5 they are drawn over the others."""

    def absent(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which values [...] have no colour and are drawn hollow."""
        return np.zeros(values.shape, bool)

    def ramp(self) -> NDArray[np.float64]:
        """256 colours [256, 3], from the left of the bar to its right."""
        return ramp(self.name)

    @abstractmethod
    def ticks(self) -> tuple[list[float], list[str]]:
        """Positions on the bar, and their labels."""


@dataclass(frozen=True)
class ColorScale(Scale):
    """For attention: from `1 / reach` over 1 (uniform) to `reach` on a logarithmic scale, clipped at both ends.

    Example:
        >>> scale = pointset.viz.ColorScale(10.0)
        >>> scale.positions(np.array([0.1, 1.0, 10.0])).round(2).tolist()
        [0.0, 0.5, 1.0]
    """

    reach: float
    """Times its uniform value, at the right end; above 1."""
    name: str = DEFAULT
    """A matplotlib colour map: perceptually uniform ones are cividis, viridis, magma, inferno, plasma, each with _r."""

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where values [...] fall on the scale, from 0 to 1; 1 falls on 0.5."""
        limit = math.log(self.reach)
        logs = np.log(np.clip(values, 1 / self.reach, self.reach))
        return (logs + limit) / (2 * limit)

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Their positions: more than uniform attention is drawn over less."""
        return self.positions(values)

    def absent(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Exact zeros, as sparse weights have them."""
        return values == 0

    def ticks(self) -> tuple[list[float], list[str]]:
        """At powers of two or four, with "1" in the middle."""
        octaves = round(math.log2(self.reach))
        step = max(1, math.ceil(octaves / 3))
        exponents = [step * i for i in range(-(octaves // step), octaves // step + 1)]
        labels = [f"1/{2**-e}" if e < 0 else f"{2**e}" for e in exponents]
        return [(e / octaves + 1) / 2 for e in exponents], labels


@dataclass(frozen=True)
class CountScale(Scale):
    """For counts: equal steps from 0 to `top`; any count above 0 is drawn over 0."""

    top: int
    name: str = DEFAULT

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Counts over the largest, with a gap between 0 and 1."""
        return np.where(values > 0, 0.3 + 0.7 * np.minimum(values / self.top, 1.0), 0.0)

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 for none, from 0.65 on for one or more."""
        return np.where(values > 0, 0.65 + 0.35 * np.minimum(values / self.top, 1.0), 0.0)

    def ticks(self) -> tuple[list[float], list[str]]:
        """At 0, 1 and the top."""
        counts = [0, self.top] if self.top < 2 else [0, 1, self.top]
        return list(self.positions(np.array(counts, dtype=float))), [f"{count}" for count in counts]


@dataclass(frozen=True)
class SignedScale(Scale):
    """For changes: equal steps from `-reach` over 0 to `reach`, purple to grey to orange."""

    reach: float
    name: str = "PuOr_r"

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 falls on 0.5."""
        return np.clip(values / self.reach, -1, 1) / 2 + 0.5

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The size of the change, whichever its sign."""
        return np.clip(np.abs(values) / self.reach, 0, 1) * 0.7 + 0.25

    def ramp(self) -> NDArray[np.float64]:
        """256 colours [256, 3]."""
        return ramp(self.name) * 0.88  # so that the middle is grey and not the paper's white

    def ticks(self) -> tuple[list[float], list[str]]:
        """At both ends and at 0."""
        return [0.0, 0.5, 1.0], [f"{-self.reach:.1g}", "0", f"+{self.reach:.1g}"]


def colors_of(scale: Scale, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """RGB [..., 3] of values [...] on a scale."""
    return scale.ramp()[np.round(scale.positions(values) * 255).astype(int)]


def scale_for(values: NDArray[np.float64], name: str | None = None) -> ColorScale:
    """The scale for all these values: its reach is a power of two, and about 1 value in 200 lies beyond."""
    top = float(np.quantile(values, 0.995))
    reach = 2.0 ** math.ceil(math.log2(min(max(top, LEAST), MOST)) - 0.05)
    return ColorScale(reach, name or DEFAULT)


def ramp(name: str, paper: Paper = "light") -> NDArray[np.float64]:
    """256 colours [256, 3] of a matplotlib colour map, adapted to the paper.

    Ends close to white are cut off. A light low end becomes greyer at the same lightness, so that points with little
    attention stay in the background. On dark paper the lighter end stands for much, whichever way the map goes, and a
    dark low end becomes a grey that can just be seen.

    Raises:
        PointsetError: matplotlib has no colour map of this name.
    """
    if name not in colormaps:
        raise PointsetError(f"no colour map is called {quoted(name)}: try cividis, viridis, magma, inferno or plasma")
    whole = colormaps[name]
    first, last = (_lightness(whole(end)[:3]) for end in (0.0, 1.0))
    if paper == "dark":
        return _for_dark(whole if first <= last else whole.reversed())
    colors = np.asarray(whole(np.linspace(0.12 if first > 0.8 else 0.0, 0.92 if last > 0.8 else 1.0, 256)))[:, :3]
    return _greyer(colors, _lightness(colors)[:, None]) if first > 0.8 else colors


def _for_dark(whole: Colormap) -> NDArray[np.float64]:
    first = _lightness(whole(0.0)[:3])
    colors = np.asarray(whole(np.linspace(0.12 if first < 0.2 else 0.0, 0.97, 256)))[:, :3]
    return _greyer(colors, np.maximum(_lightness(colors), 0.31)[:, None]) if first < 0.2 else colors


def _greyer(colors: NDArray[np.float64], grey: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colours [256, 3] whose low end is nearly grey [256, 1]."""
    share = 0.8 * np.clip(1 - np.linspace(0, 1, 256) / 0.45, 0, 1)[:, None]
    return (1 - share) * colors + share * grey


def _lightness(rgb: Any) -> Any:
    """Luma of colours [..., 3] (Rec. 709)."""
    return np.asarray(rgb) @ (0.2126, 0.7152, 0.0722)
