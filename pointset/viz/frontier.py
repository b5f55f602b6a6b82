"""Accuracy against cost: one dot per model, and the Pareto frontier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from pointset.viz.charts import COLORS, MARKERS, log_axis, plain
from pointset.viz.sheet import FAINT, INK

Side = Literal["left", "right"]
STEP = 9.0
"""Distance in points between the lines on which names can be placed."""
MARK = 3.5
"""Half the width of a dot, in points."""


@dataclass(frozen=True)
class Dot:
    """One row of a comparison."""

    name: str
    cost: float
    """The cost on the horizontal axis, above 0."""
    mean: float
    low: float
    """Lower end of the error bar."""
    high: float
    style: Mapping[str, Any] = field(default_factory=dict)
    """Options of matplotlib for the marker."""


def frontier(dots: Sequence[Dot], higher_is_better: bool = True) -> list[Dot]:
    """The dots on the Pareto frontier, by increasing cost: no other dot is as good for at most the same cost.

    If several dots have equal cost and mean, all of them are included.
    """
    sign = 1 if higher_is_better else -1

    def beats(other: Dot, dot: Dot) -> bool:
        as_good = other.cost <= dot.cost and sign * other.mean >= sign * dot.mean
        return as_good and (other.cost, other.mean) != (dot.cost, dot.mean)

    found = [dot for dot in dots if not any(beats(other, dot) for other in dots)]
    return sorted(found, key=lambda dot: (dot.cost, dot.mean))


def draw_frontier(axes: Axes, dots: Sequence[Dot], higher_is_better: bool = True) -> None:
    """Draw dots with error bars on a logarithmic axis of costs, and a line through the frontier."""
    front = frontier(dots, higher_is_better)
    for dot in dots:
        reach = [[dot.mean - dot.low], [dot.high - dot.mean]]
        style: dict[str, Any] = {"markersize": 4, "alpha": 1.0 if dot in front else 0.65, **dot.style}
        axes.errorbar([dot.cost], [dot.mean], reach, capsize=2, lw=1, ls="", **style)
    axes.step([dot.cost for dot in front], [dot.mean for dot in front], where="post", color="#bbbbbb", lw=1, zorder=0)
    log_axis(axes)
    axes.margins(x=0.12, y=0.2)  # room for names


def name_frontier(axes: Axes, dots: Sequence[Dot], higher_is_better: bool = True) -> None:
    """Write the names of the dots on the frontier beside them, so that they overlap no dot, bar or other name.

    Call it when the layout of the figure is final: positions are computed in pixels.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    taken = [box for dot in dots for box in _boxes(axes, dot)]
    for dot in frontier(dots, higher_is_better):
        label = _best_place(axes, dot, taken)
        taken.append(_words(label))


def _best_place(axes: Axes, dot: Dot, taken: Sequence[Bbox]) -> Annotation:
    """Write the name at the first position without overlap, or at the one with least overlap."""
    inside, least, best = axes.get_window_extent(), np.inf, None
    for align, x, y in _places():
        label = _write(axes, dot, align, x, y)
        box = _words(label)
        covered = sum(_common(box, other) for other in taken) + 10 * (_area(box) - _common(box, inside))
        if covered < least:
            if best is not None:
                best.remove()
            least, best = covered, label
        else:
            label.remove()
        if least < 1e-9:
            break
    assert best is not None
    return best


def _places() -> Iterator[tuple[Side, float, float]]:
    """Alignments and offsets in points; first above and left of the dot, where no other dot of higher value can be."""
    for line in range(14):
        for up in (1, -1):
            yield "right", -MARK - 1, up * (2.0 + line * STEP)
            yield "left", MARK + 1, up * (2.0 + line * STEP)


def _write(axes: Axes, dot: Dot, align: Side, x: float, y: float) -> Annotation:
    line = {"arrowstyle": "-", "color": FAINT, "lw": 0.5, "shrinkA": 0, "shrinkB": 3} if abs(y) > STEP else None
    return axes.annotate(
        plain(dot.name),
        (dot.cost, dot.mean),
        (x, y),
        textcoords="offset points",
        ha=align,
        va="bottom" if y > 0 else "top",
        fontsize=6.5,
        color=INK,
        arrowprops=line,
        annotation_clip=False,
        in_layout=False,
    )


def _words(label: Annotation) -> Bbox:
    """The box of the text of a label, without its line."""
    label.get_window_extent()  # updates the position of the text
    return Text.get_window_extent(label).padded(1)


def _boxes(axes: Axes, dot: Dot) -> Iterator[Bbox]:
    """The boxes of a dot and of its error bar, in pixels."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    half = MARK * figure.dpi / 72
    (x, y), (_, low), (_, high) = axes.transData.transform([(dot.cost, at) for at in (dot.mean, dot.low, dot.high)])
    yield Bbox([[x - half, y - half], [x + half, y + half]])
    if high > low:
        yield Bbox([[x - 1, low], [x + 1, high]])


def _common(one: Bbox, other: Bbox) -> float:
    found = Bbox.intersection(one, other)
    return 0.0 if found is None else _area(found)


def _area(box: Bbox) -> float:
    return abs(float(box.width * box.height))


def pair_styles(names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Styles for models named by two parts: a colour for each encoder, a marker for each pooling."""
    first, second = (list(dict.fromkeys(parts)) for parts in zip(*names, strict=True))
    return {
        pair: {
            "color": COLORS[first.index(pair[0]) % len(COLORS)],
            "marker": MARKERS[second.index(pair[1]) % len(MARKERS)],
        }
        for pair in names
    }


def pair_legend(styles: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries of a legend for `pair_styles`: each colour, and each marker in grey."""
    colors = {first: {"color": style["color"], "lw": 4} for (first, _), style in styles.items()}
    markers = {
        second: {"color": FAINT, "marker": style["marker"], "ls": "", "markersize": 4}
        for (_, second), style in styles.items()
        if second  # empty for a whole model
    }
    return {**{f"{name}-": style for name, style in colors.items()}, **{f"-{n}": s for n, s in markers.items()}}
