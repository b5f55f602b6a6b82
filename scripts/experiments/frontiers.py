"""The figures of the results pages: accuracy against a cost, for each number of points, with the Pareto front."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib.figure
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from PIL import Image
from saved import Saved, SavedRow, short, study_table

from pointset.viz import Dot, draw_frontier, frontier

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255", "#44aa99")
MARKERS = "osD^vPX*<>hpd8Hx+1234"
FAINT = "#6b6b6b"

SIZES = {"100 points": (100,), "1,000 points": (1000, 1024)}
"""Titles of the panels of a figure, and the numbers of points of the test sets in each panel."""
DATA = "modelnet40_ply_hdf5_1024"
TIMED = ("encoder_pooling_100", "frontier", "minutes_100", "five_minutes_100", "minutes_1000")
"""Experiments whose training times are comparable, because they are from one machine."""
FLOOR = 60.0
"""Rows with a lower accuracy, in percent, are not drawn but named, so that the other rows remain distinct."""

SEEDS = 3
"""Rows with fewer seeds have no interval in the figure."""


def draw_costs(axes: Axes, dots: Sequence[Dot], x: str, y: str) -> None:
    """Draw dots and their Pareto front, with labels of the axes and a grid."""
    draw_frontier(axes, dots)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(color="#eeeeee", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save_picture(
    picture: matplotlib.figure.Figure, styles: Mapping[str, Mapping[str, Any]], file: Path, digest: str = ""
) -> None:
    """Write a picture as PNG with a legend below it."""
    handles = [Line2D([], [], **{"markersize": 4, **style}) for style in styles.values()]
    columns = min(5, 100 // max(map(len, styles)))
    picture.legend(handles, list(styles), loc="outside lower center", ncols=columns, fontsize=7.5, frameon=False)
    picture.savefig(file, format="png", dpi=160, metadata={"Description": digest})


@dataclass(frozen=True)
class Figure:
    """A figure of accuracy against one cost."""

    title: str
    axis: str
    cost: Callable[[SavedRow], float | None]
    results: tuple[str, ...] | None = None
    """Names of the experiments whose rows are shown; None for all."""

    def dots(self, saved: Mapping[str, Saved], sizes: tuple[int, ...]) -> list[Dot]:
        """A dot for each row with one of these numbers of points."""
        shown = [row for row in all_rows(saved) if self.results is None or row.experiment in self.results]
        costs = [(row, self.cost(row)) for row in shown if row.points in sizes]
        labels = Counter(short_label(row) for row, cost in costs if cost is not None)
        (colors, markers), dots = parts_of(saved), list[Dot]()
        for row, cost in costs:
            if cost is not None:
                name = short_label(row) + (f" ({row.experiment})" if labels[short_label(row)] > 1 else "")
                low, high = (row.low, row.high) if row.seeds >= SEEDS else (row.mean, row.mean)
                style = {"color": colors[row.parts[0]], "marker": markers[row.parts[1]]}
                dots.append(Dot(name, cost, 100 * row.mean, 100 * low, 100 * high, style))
        return dots

    def front(self, saved: Mapping[str, Saved], sizes: tuple[int, ...]) -> list[Dot]:
        """The Pareto front of the dots above `FLOOR`, in the order of increasing cost."""
        return frontier([dot for dot in self.dots(saved, sizes) if dot.mean >= FLOOR])

    def digest(self, saved: Mapping[str, Saved]) -> str:
        """Digest of the values that the figure shows."""
        shown = {title: [asdict(dot) for dot in self.dots(saved, sizes)] for title, sizes in SIZES.items()}
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]


FIGURES = {
    "figures/multiply-adds.png": Figure(
        "Accuracy against multiply-adds",
        "M multiply-adds of a set",
        lambda row: row.multiply_adds and row.multiply_adds / 1e6,
    ),
    "figures/training-seconds.png": Figure(
        "Accuracy against training time", "training seconds on one core", lambda row: row.seconds, TIMED
    ),
}


def short_label(row: SavedRow) -> str:
    """The label of a row, or the name of its model if the label only adds options such as `head_dim=256`."""
    options = row.label.removeprefix(row.name).split()
    return row.name if all("=" in option for option in options) else row.label


def all_rows(saved: Mapping[str, Saved]) -> list[SavedRow]:
    """The rows on ModelNet40 of all saved results."""
    return [row for one in saved.values() if one.about["data"] == DATA for row in one.rows]


def parts_of(saved: Mapping[str, Saved]) -> tuple[dict[str, str], dict[str, str]]:
    """The colours of the encoders, and the markers of the poolings."""
    encoders, poolings = map(dict.fromkeys, zip(*(row.parts for row in all_rows(saved)), strict=True))
    return dict(zip(encoders, COLORS, strict=False)), dict(zip(poolings, MARKERS, strict=False))


def draw(figure: Figure, saved: Mapping[str, Saved], file: Path) -> None:
    """Write a figure as PNG, with the digest of its values."""
    panels = {title: dots for title, sizes in SIZES.items() if (dots := figure.dots(saved, sizes))}
    picture = matplotlib.figure.Figure((7.2, 3.6 * len(panels) + 0.8), layout="constrained")
    axes = picture.subplots(len(panels), squeeze=False)[:, 0]
    drawn = {title: [dot for dot in dots if dot.mean >= FLOOR] for title, dots in panels.items()}
    for one, (title, dots) in zip(axes, drawn.items(), strict=True):
        draw_costs(one, dots, figure.axis, "accuracy %")
        one.set_title(title, fontsize=9, loc="left")
        corner: dict[str, Any] = {"transform": one.transAxes, "ha": "right", "va": "bottom"}
        one.text(0.99, 0.02, left_out(panels[title]), fontsize=6.5, color=FAINT, **corner)
    colors, markers = parts_of(saved)
    styles: dict[str, dict[str, Any]] = {f"{encoder}-": {"color": color, "lw": 4} for encoder, color in colors.items()}
    for pooling, marker in markers.items():
        if pooling:  # empty for a whole model
            styles[f"-{pooling}"] = {"color": FAINT, "marker": marker, "ls": ""}
    save_picture(picture, styles, file, figure.digest(saved))


def left_out(dots: list[Dot]) -> str:
    """Text that names the rows of a panel that are not drawn."""
    low = ", ".join(f"{dot.name} {dot.mean:.0f}" for dot in dots if dot.mean < FLOOR)
    return fill(f"Not drawn, below {FLOOR:.0f} %: {low}", 60) if low else ""


def written_digest(file: Path) -> str:
    """Digest that is stored in a figure; empty if the file does not exist."""
    if not file.exists():
        return ""
    with Image.open(file) as picture:
        return picture.info.get("Description", "")


def front_table(figure: Figure, saved: Mapping[str, Saved]) -> Iterator[str]:
    """A table of the Pareto front for each number of points."""
    for title, sizes in SIZES.items():
        if lines := [(dot.name, short(dot.cost), f"{dot.mean:.1f}") for dot in figure.front(saved, sizes)]:
            yield (
                f"The table has the Pareto front at {title}: every other model with the same or a lower cost has a "
                "lower accuracy. The columns have the model (with the experiment in brackets), the cost and the "
                "accuracy."
            )
            yield study_table(lines, ("model", figure.axis, "accuracy %"), form="pipe")
