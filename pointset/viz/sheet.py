"""A matplotlib figure with positions in inches from its top left corner; without pyplot, so it has no global state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from pointset.errors import escaped
from pointset.viz.color import FAINT, INK, Scale
from pointset.viz.writing import as_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

DPI = 100
MARGIN = 0.15
LETTER = 0.0078
"""Width of a letter in inches, per point of font size."""


def text_width(text: str, size: float) -> float:
    """The width of a line in inches, in a font of this size in points."""
    return TextPath((0, 0), text, size=size, usetex=False).get_extents().width / 72 if text.strip() else 0.0


def shorten(name: str, width: float, size: float) -> str:
    """A name of about `width` inches in a font of this size, with its middle left out if it is longer."""
    most = max(int(width / (LETTER * size)), 3)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - (most - 1) // 2 :]}"


class Picture(Figure):
    """A matplotlib figure that a notebook shows as PNG when it is the last line of a cell, with or without pyplot."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        return as_png(self, DPI)


class Sheet:
    """A picture of a given size in inches; positions are measured from its top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.picture = Picture(width, height)
        self.width, self.height = width, height

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes in a box."""
        return self.picture.add_axes(
            (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        )

    def text(
        self, left: float, top: float, text: str, size: float = 9, width: float | None = None, **options: Any
    ) -> Text:
        r"""Add a text whose first line is below `top`. Dollar signs are literal; control characters show as \x1b.

        With `width`, in inches, a longer line is shortened.
        """
        style: dict[str, Any] = {"ha": "left", "va": "top", "color": INK} | options
        lines = [escaped(line) if width is None else shorten(escaped(line), width, size) for line in text.split("\n")]
        corner = left / self.width, 1 - top / self.height
        return self.picture.text(*corner, "\n".join(lines), fontsize=size, parse_math=False, **style)

    def heading(self, title: str, note: str) -> None:
        """Add a title and a line with a note under it, in a smaller font if they are too wide for the sheet."""
        # Hinting rounds letters to whole pixels, so the width of a line may shrink less than its font size.
        room = 0.96 * (self.width - 2 * MARGIN) * DPI
        lines = (
            self.text(MARGIN, 0.13, title, 11, 1.5 * self.width, weight="bold"),
            self.text(MARGIN, 0.38, note, 8, color=FAINT),
        )
        for line in lines:
            size = float(line.get_fontsize())
            line.set_fontsize(size * min(1.0, room / max(line.get_window_extent().width, 1.0)))

    def bar(self, scale: Scale, left: float, top: float, width: float, label: str, uniform: bool = True) -> None:
        """Add a horizontal colour bar with a label on its left; `uniform` labels its 1 as uniform attention."""
        axes = self.axes(left, top, width, 0.11)
        axes.imshow(scale.ramp()[None], aspect="auto", extent=(0, 1, 0, 1), interpolation="bilinear")
        positions, labels = scale.ticks()
        meaning = "1 = uniform" if uniform and width > 2.6 else "1"  # on a short bar, it would overlap the other labels
        axes.set_xticks(positions, [meaning if text == "1" else text for text in labels], fontsize=7)
        axes.set_yticks([])
        axes.tick_params(length=2, pad=1.5, width=0.5, labelcolor=INK)
        for spine in axes.spines.values():
            spine.set_visible(False)
        self.text(left - 0.1, top + 0.055, label, 7.5, ha="right", va="center", color=FAINT)
