"""Charts in a common style: panels, axes, legends, styles of models, and accuracy against cost."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

from pointset.errors import PointsetError, escaped
from pointset.viz.color import COLORS, FAINT, INK
from pointset.viz.writing import as_png

MARKERS = "osD^vPX*<>hpd8Hx+1234"
WIDTH, DPI = 7.2, 100
"""Width of a figure in inches (equal to the text width of a page), and resolution of a figure on a screen."""
LETTER = 0.0078
"""Width of a letter in inches, per point of font size."""
LINE_HEIGHT = 0.16
"""Height of a line of text or of a legend, in inches."""
ACROSS, HANDLE = 5, 0.5
"""Maximum number of names in a line of a legend, and the width of the marker before a name, in inches."""


class Picture(Figure):
    """A matplotlib figure that a notebook shows as PNG if it is the last expression of a cell, with or without pyplot.

    PDF files embed fonts as TrueType, because publishers refuse matplotlib's default, Type 3.
    """

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure, with the options of `matplotlib.figure.Figure.savefig`."""
        with rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        return as_png(self, DPI)


def shorten(name: str, width: float, size: float) -> str:
    """Return a name, without its middle part if the name is wider than about `width` inches in a font of this size."""
    most = max(int(width / (LETTER * size)), 3)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - (most - 1) // 2 :]}"


def line_style(index: int) -> dict[str, Any]:
    """Return the style of the model with this index. The style is the same on all charts."""
    return {"color": COLORS[index % len(COLORS)], "marker": MARKERS[index % len(MARKERS)], "markersize": 4}


def plain_label(label: str) -> str:
    """Escape dollar signs (matplotlib expects formulas between them) and control characters (fonts lack them)."""
    return escaped(label).replace("$", r"\$")


def make_panels(
    count: int,
    across: int,
    height: float,
    *,
    width: float = WIDTH,
    sharey: bool = False,
    title: str = "",
    note: str = "",
    spare: float = 0.5,
) -> tuple[Picture, list[Axes]]:
    """Return a picture of `count` panels `height` inches high, at most `across` in a line, with a title and a note.

    `spare` is additional height in inches, such as for a legend.
    """
    across = min(across, max(count, 1))
    down = math.ceil(max(count, 1) / across)
    letters = int(width / (LETTER * 10))
    heading = textwrap.wrap(escaped(shorten(title, 2 * width, 9)), letters)
    caption = textwrap.wrap(note, int(1.2 * letters))
    picture = Picture(width, height * down + spare + LINE_HEIGHT * (len(heading) + len(caption)))
    picture.set_layout_engine("constrained")
    if heading:
        picture.suptitle("\n".join(heading), fontsize=9, fontweight="bold", color=INK, parse_math=False)
    if caption:
        picture.supxlabel("\n".join(caption), fontsize=7.5, color=FAINT, parse_math=False)
    grid = picture.subplots(down, across, sharey=sharey, squeeze=False)
    panels: list[Axes] = list(grid.flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    return picture, panels[:count]


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Label the axes, and draw them in an unobtrusive style."""
    axes.set_xlabel(x, fontsize=8, color=FAINT)
    axes.set_ylabel(y, fontsize=8, color=FAINT)
    axes.tick_params(labelsize=7, length=2, color=FAINT, labelcolor=INK)
    axes.grid(color="#eeeeee", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def with_legend(figure: Figure, styles: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Add a legend of named styles below the panels."""
    handles = [Line2D([], [], **{"lw": 1.2, **style}) for style in styles.values()]
    names = [plain_label(shorten(name, WIDTH - 2 * HANDLE, 7.5)) for name in styles]
    across = max(1, min(ACROSS, int(WIDTH / (HANDLE + 9 * LETTER * max(map(len, names), default=1)))))
    lines = -(-len(names) // across)
    figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * max(0, lines - 2))  # `make_panels` leaves room for two
    legend = figure.legend(handles, names, loc="outside lower center", ncols=across, fontsize=7.5, frameon=False)
    if note := figure.get_supxlabel():  # matplotlib would draw the legend over the note
        figure.supxlabel("")
        legend.set_title(note)
        legend.get_title().set(color=FAINT, fontsize=7.5, parse_math=False)
    return figure


@dataclass(frozen=True)
class Dot:
    """One model in a chart of accuracy against cost.

    Args:
        name, cost: the name, and the cost on the horizontal axis, above 0.
        mean, low, high: the metric, and both ends of the error bar.
        style: matplotlib options of the marker.

    Example:
        >>> pointset.viz.Dot("rff-max", cost=19.8, mean=82.2, low=80.6, high=83.7).cost
        19.8
    """

    name: str
    cost: float
    mean: float
    low: float
    high: float
    style: Mapping[str, Any] = field(default_factory=dict)


def frontier(dots: Sequence[Dot], higher_is_better: bool = True) -> list[Dot]:
    """Return the dots on the Pareto frontier, sorted by cost.

    A dot is on the frontier if no other dot has an equal or better mean at an equal or lower cost. Dots with the same
    cost and mean do not exclude each other.

    Args:
        dots: models, with their costs and means.
        higher_is_better: True for a metric such as accuracy, False for one such as an error.

    Returns:
        The dots of the frontier, from the lowest to the highest cost.

    Example:
        >>> dots = [pointset.viz.Dot(name, cost, mean, mean, mean) for name, cost, mean in (("a", 1, 70), ("b", 2, 60))]
        >>> [dot.name for dot in pointset.viz.frontier(dots)]
        ['a']
    """
    sign = 1 if higher_is_better else -1

    def beats(other: Dot, dot: Dot) -> bool:
        as_good = other.cost <= dot.cost and sign * other.mean >= sign * dot.mean
        return as_good and (other.cost, other.mean) != (dot.cost, dot.mean)

    best = [dot for dot in dots if not any(beats(other, dot) for other in dots)]
    return sorted(best, key=lambda dot: (dot.cost, dot.mean))


def draw_frontier(axes: Axes, dots: Sequence[Dot], higher_is_better: bool = True) -> None:
    """Draw dots with error bars on a logarithmic cost axis (ticks 1, 2, 5, 10, ...), and a line along the frontier.

    Args:
        axes: axes of matplotlib.
        dots: models, with their costs and means.
        higher_is_better: see `frontier`.

    Example:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> pointset.viz.draw_frontier(axes, [pointset.viz.Dot("rff-max", 19.8, 82.2, 80.6, 83.7)])
    """
    front = frontier(dots, higher_is_better)
    for dot in dots:
        reach = [[dot.mean - dot.low], [dot.high - dot.mean]]
        style: dict[str, Any] = {"markersize": 4, "alpha": 1.0 if dot in front else 0.65, **dot.style}
        axes.errorbar([dot.cost], [dot.mean], reach, capsize=2, lw=1, ls="", **style)
    axes.step([dot.cost for dot in front], [dot.mean for dot in front], where="post", color="#bbbbbb", lw=1, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.margins(x=0.12, y=0.1)


def pair_styles(names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return styles of models by (encoder, pooling): a colour for each encoder, and a marker for each pooling."""
    encoders, poolings = (list(dict.fromkeys(words)) for words in zip(*names, strict=True))
    return {
        (encoder, pooling): {
            "color": COLORS[encoders.index(encoder) % len(COLORS)],
            "marker": MARKERS[poolings.index(pooling) % len(MARKERS)],
        }
        for encoder, pooling in names
    }


def pair_legend(styles: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the legend for `pair_styles`: the colour of each encoder, and the marker of each pooling in grey."""
    colors = {f"{encoder}-": {"color": style["color"], "lw": 4} for (encoder, _), style in styles.items()}
    markers = {
        f"-{pooling}": {"color": FAINT, "marker": style["marker"], "ls": "", "markersize": 4}
        for (_, pooling), style in styles.items()
        if pooling  # empty for a whole model
    }
    return {**colors, **markers}


def draw_specialisation(
    trained: Mapping[str, Any],
    control: Mapping[str, Any],
    *,
    descriptions: Mapping[str, str] | None = None,
    title: str = "Do inducing points specialise?",
) -> Picture:
    """Draw measures of specialisation of each head and inducing point, for a trained and an untrained model.

    Args:
        trained: values of each measure, [heads, inducing points] or a vector, by the name of the measure.
        control: the same measures of the untrained model.
        descriptions: the meaning of measures by their names, such as {"entropy": "1 = uniform attention"}.
        title: title of the picture.

    Raises:
        PointsetError: there are no measures, or `trained` and `control` have different measures.
    """
    if not trained or set(trained) != set(control):
        names = f"{', '.join(trained) or 'none'} and {', '.join(control) or 'none'}"
        raise PointsetError(f"trained and control must have the same measures, at least one, got {names}")
    note = "one dot per head (colour) and inducing point; bar: median"
    figure, panels = make_panels(len(trained), len(trained), 3.0, title=title, note=note)
    heads = 1
    for axes, name in zip(panels, trained, strict=True):
        pair = [np.atleast_2d(np.asarray(values[name], dtype=np.float64)) for values in (trained, control)]
        heads = max(heads, *(len(values) for values in pair))
        _draw_measure(axes, pair)
        description = textwrap.fill((descriptions or {}).get(name, ""), 95 // len(trained))
        axes.set_title(f"{name}\n{description}", fontsize=8)
    if heads > 1:
        marker = {"marker": "o", "ls": "", "markersize": 4}
        with_legend(figure, {f"head {head}": {"color": COLORS[head % len(COLORS)], **marker} for head in range(heads)})
    return figure


def _draw_measure(axes: Axes, pair: list[NDArray[np.float64]]) -> None:
    for x, values in enumerate(pair):
        head = np.arange(len(values))[:, None] + np.zeros(values.shape, dtype=int)
        # Multiples of the golden ratio spread the dots of a column evenly, without randomness.
        offsets = ((np.arange(values.size) * 0.618034) % 1 - 0.5) * 0.55
        colors = [COLORS[h % len(COLORS)] for h in head.ravel()]
        axes.scatter(x + offsets, values.ravel(), s=13, c=colors, alpha=0.75, linewidths=0)
        axes.plot([x - 0.38, x + 0.38], [float(np.nanmedian(values))] * 2, color=INK, linewidth=1.6)
    everything = np.concatenate([values.ravel() for values in pair])
    if np.nanmin(everything) >= 0 and np.nanmax(everything) <= 1:
        axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.6, 1.6)
    label_axes(axes, "", "")
    axes.set_xticks([0, 1], ["trained", "untrained"], fontsize=8)
    axes.grid(visible=False, axis="x")
