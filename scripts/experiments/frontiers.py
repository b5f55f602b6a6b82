"""The figures of the pages: accuracy against a cost, for each number of points, with the Pareto front."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from PIL import Image
from saved import Saved, SavedRow, short, study_table

from pointset.viz.charts import (
    Dot,
    draw_frontier,
    frontier,
    label_axes,
    make_panels,
    pair_legend,
    pair_styles,
    with_legend,
)
from pointset.viz.color import FAINT

SIZES = {"100 points": (100,), "1,000 points": (1000, 1024)}
"""The panels of a figure, and the sizes of set that each shows."""
DATA = "modelnet40_ply_hdf5_1024"
TIMED = ("encoder_pooling_100", "frontier", "minutes_100", "five_minutes_100", "minutes_1000")
"""Results from one machine, whose training times are comparable."""
FLOOR = 60.0
"""Accuracy in percent below which rows are named but not drawn, so that the others remain distinct."""

SEEDS = 3
"""Rows with fewer seeds have no bar."""


@dataclass(frozen=True)
class Figure:
    """One cost of the rows."""

    title: str
    axis: str
    cost: Callable[[SavedRow], float | None]
    results: tuple[str, ...] | None = None
    """Experiments whose rows it shows; all if None."""

    def dots(self, saved: Mapping[str, Saved], sizes: tuple[int, ...]) -> list[Dot]:
        """The rows of these sizes, one dot each."""
        shown = [row for row in all_rows(saved) if self.results is None or row.experiment in self.results]
        costs = [(row, self.cost(row)) for row in shown if row.points in sizes]
        rows = [row for row, cost in costs if cost is not None]
        labels = Counter(map(short_label, rows))
        styles = pair_styles([row.parts for row in all_rows(saved)])
        return [
            Dot(
                short_label(row) + (f" ({row.experiment})" if labels[short_label(row)] > 1 else ""),
                self.cost(row) or 0.0,
                100 * row.mean,
                100 * bar(row)[0],
                100 * bar(row)[1],
                styles[row.parts],
            )
            for row in rows
        ]

    def front(self, saved: Mapping[str, Saved], sizes: tuple[int, ...]) -> list[Dot]:
        """The Pareto front of the dots above `FLOOR`, cheapest first."""
        return frontier([dot for dot in self.dots(saved, sizes) if dot.mean >= FLOOR])

    def digest(self, saved: Mapping[str, Saved]) -> str:
        """Digest of the values that the figure shows."""
        shown = {title: [asdict(dot) for dot in self.dots(saved, sizes)] for title, sizes in SIZES.items()}
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:16]


def bar(row: SavedRow) -> tuple[float, float]:
    """Ends of a row's 95 % interval; the mean, twice, for fewer than `SEEDS` seeds."""
    return (row.low, row.high) if row.seeds >= SEEDS else (row.mean, row.mean)


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
    """Its label; the model's name where the label only adds options, as `head_dim=256`."""
    options = row.label.removeprefix(row.name).split()
    return row.name if all("=" in option for option in options) else row.label


def all_rows(saved: Mapping[str, Saved]) -> list[SavedRow]:
    """The rows on ModelNet40 of all saved results."""
    return [row for one in saved.values() if one.about["data"] == DATA for row in one.rows]


def draw(name: str, saved: Mapping[str, Saved], file: Path) -> None:
    """Write a figure as PNG, with the digest of its values."""
    figure = FIGURES[name]
    panels = {title: dots for title, sizes in SIZES.items() if (dots := figure.dots(saved, sizes))}
    picture, axes = make_panels(len(panels), 1, 3.6)
    drawn = {title: [dot for dot in dots if dot.mean >= FLOOR] for title, dots in panels.items()}
    for one, (title, dots) in zip(axes, drawn.items(), strict=True):
        draw_frontier(one, dots)
        one.set_title(title, fontsize=9, loc="left")
        corner: dict[str, Any] = {"transform": one.transAxes, "ha": "right", "va": "bottom"}
        one.text(0.99, 0.02, left_out(panels[title]), fontsize=6.5, color=FAINT, **corner)
        label_axes(one, figure.axis, "accuracy %")
    with_legend(picture, pair_legend(pair_styles([row.parts for row in all_rows(saved)])))
    picture.savefig(file, format="png", dpi=160, metadata={"Description": figure.digest(saved)})


def left_out(dots: list[Dot]) -> str:
    """Text on the rows of a panel that are not drawn."""
    low = ", ".join(f"{dot.name} {dot.mean:.0f}" for dot in dots if dot.mean < FLOOR)
    return fill(f"Not drawn, below {FLOOR:.0f} %: {low}", 60) if low else ""


def written_digest(file: Path) -> str:
    """Digest that is stored in a figure; empty if the file does not exist."""
    if not file.exists():
        return ""
    with Image.open(file) as picture:
        return picture.info.get("Description", "")


def front_table(figure: Figure, saved: Mapping[str, Saved]) -> Iterator[str]:
    """A table with the Pareto front of each number of points."""
    for title, sizes in SIZES.items():
        if lines := [(dot.name, short(dot.cost), f"{dot.mean:.1f}") for dot in figure.front(saved, sizes)]:
            yield (
                f"Pareto front at {title}: no other row is as accurate at the same or a lower cost. The columns have "
                "the model (with the experiment in brackets), the cost and the accuracy."
            )
            yield study_table(lines, ("model", figure.axis, "accuracy %"), form="pipe")
