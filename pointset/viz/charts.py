"""Charts in a common style: panels, axes, and a colour and a marker for each model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from pointset.errors import escaped
from pointset.viz.sheet import FAINT, INK, Picture, shorten

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255", "#44aa99")
"""Wong's palette for all kinds of colour vision (Nature Methods 8, 441, 2011), and three more of Tol's."""
MARKERS = "osD^vPX*<>hpd8Hx+1234"
ACROSS = 5
"""Maximum number of names in a line of a legend."""
HANDLE, LETTER = 0.5, 0.07
"""Width in inches of the marker before a name in a legend, and of a letter."""
LINE = 0.16
"""Height in inches of a line of a legend."""
WIDTH = 7.2
"""Width of a figure in inches, as wide as the page's text."""


def line_style(index: int) -> dict[str, Any]:
    """The style of the model with this index, the same on all charts."""
    return {"color": COLORS[index % len(COLORS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def plain(label: str) -> str:
    """Escape a label: matplotlib interprets dollar signs as formulas, and fonts have no control characters."""
    return escaped(label).replace("$", r"\$")


def make_panels(count: int, across: int, height: float, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, at most `across` in a line, each `height` inches high."""
    across = min(across, max(count, 1))
    down = math.ceil(max(count, 1) / across)
    figure = Picture(WIDTH, height * down + 0.5)
    figure.set_layout_engine("constrained")
    grid = figure.subplots(down, across, sharey=sharey, squeeze=False)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, panels[:count]


def log_axis(axes: Axes) -> None:
    """A logarithmic horizontal axis with plain numbers: 1, 2, 5, 10, ..."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Label the axes, and draw them in a style that does not distract from the data."""
    axes.set_xlabel(x, fontsize=8, color=FAINT)
    axes.set_ylabel(y, fontsize=8, color=FAINT)
    axes.tick_params(labelsize=7, length=2, color=FAINT, labelcolor=INK)
    axes.grid(color="#eeeeee", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def with_legend(figure: Figure, styles: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Add a legend under the figure, with a name for each style."""
    handles = [Line2D([], [], **{"lw": 1.2, **style}) for style in styles.values()]
    names = [plain(shorten(name, WIDTH - 2 * HANDLE, 7.5)) for name in styles]
    across = max(1, min(ACROSS, int(WIDTH / (HANDLE + LETTER * max(map(len, names), default=1)))))
    lines = -(-len(names) // across)
    figure.set_figheight(figure.get_figheight() + LINE * max(0, lines - 2))  # `make_panels` has room for two
    figure.legend(handles, names, loc="outside lower center", ncols=across, fontsize=7.5, frameon=False)
    return figure
