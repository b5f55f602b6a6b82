"""Accuracy against cost: one dot per model, and the Pareto frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from pointset.viz.charts import COLORS, MARKERS, log_axis, plain
from pointset.viz.sheet import FAINT, INK, shorten

STEP = 9.0
"""Distance in points between the lines on which names can be placed."""
MARK = 3.5
"""Half the width of a dot, in points."""
LONGEST = 3.5
"""Largest width of a name, in inches."""


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

    best = [dot for dot in dots if not any(beats(other, dot) for other in dots)]
    return sorted(best, key=lambda dot: (dot.cost, dot.mean))


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
    half, taken, inside = MARK * figure.dpi / 72, [], axes.get_window_extent()
    for dot in dots:
        (x, low), (_, y), (_, high) = axes.transData.transform([(dot.cost, at) for at in (dot.low, dot.mean, dot.high)])
        taken += [Bbox([[x - half, y - half], [x + half, y + half]]), Bbox([[x - 1, low], [x + 1, high + 1e-3]])]
    # First above and left of the dot, where no dot of higher value can be; then further away, below and right.
    offsets = [(side, up * (2.0 + line * STEP)) for line in range(14) for up in (1, -1) for side in ("right", "left")]
    for dot in frontier(dots, higher_is_better):
        trials = []
        for side, y in offsets:
            label = _write(axes, dot, side, y)
            box = _box(label)
            outside = _area(box) - _common(box, inside)
            trials.append((sum(_common(box, other) for other in taken) + 10 * outside, label))
            if trials[-1][0] < 1e-9:
                break
        best = min(trials, key=lambda trial: trial[0])[1]
        for _, label in trials:
            if label is not best:
                label.remove()
        taken.append(_box(best))


def _write(axes: Axes, dot: Dot, side: Any, y: float) -> Annotation:
    line = {"arrowstyle": "-", "color": FAINT, "lw": 0.5, "shrinkA": 0, "shrinkB": 3} if abs(y) > STEP else None
    return axes.annotate(
        plain(shorten(dot.name, LONGEST, 6.5)),
        (dot.cost, dot.mean),
        (MARK + 1 if side == "left" else -MARK - 1, y),
        textcoords="offset points",
        ha=side,
        va="bottom" if y > 0 else "top",
        fontsize=6.5,
        color=INK,
        arrowprops=line,
        annotation_clip=False,
        in_layout=False,
    )


def _box(label: Annotation) -> Bbox:
    """The box of the text of a label, without its line."""
    label.get_window_extent()  # updates the position of the text
    return Text.get_window_extent(label).padded(1)


def _common(box: Bbox, other: Bbox) -> float:
    both = Bbox.intersection(box, other)
    return 0.0 if both is None else _area(both)


def _area(box: Bbox) -> float:
    return abs(float(box.width * box.height))


def pair_styles(names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Styles for models named by two words: a colour for each encoder, a marker for each pooling."""
    encoders, poolings = (list(dict.fromkeys(words)) for words in zip(*names, strict=True))
    return {
        (encoder, pooling): {
            "color": COLORS[encoders.index(encoder) % len(COLORS)],
            "marker": MARKERS[poolings.index(pooling) % len(MARKERS)],
        }
        for encoder, pooling in names
    }


def pair_legend(styles: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries of a legend for `pair_styles`: each colour, and each marker in grey."""
    colors = {f"{encoder}-": {"color": style["color"], "lw": 4} for (encoder, _), style in styles.items()}
    markers = {
        f"-{pooling}": {"color": FAINT, "marker": style["marker"], "ls": "", "markersize": 4}
        for (_, pooling), style in styles.items()
        if pooling  # empty for a whole model
    }
    return {**colors, **markers}
