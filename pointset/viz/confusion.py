"""Pictures of confusion matrices."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pointset.viz.charts import LETTER, WIDTH, make_panels, plain_label, shorten
from pointset.viz.color import COLORS, INK

RIGHT, WRONG = COLORS[0], COLORS[1]
FEW_CLASSES = 12
"""Largest number of classes for which two matrices are drawn side by side."""
WIDEST_CLASS = 1.8
"""Largest width of a class name, in inches."""


def draw_confusions(counts: Mapping[str, NDArray[np.int64]], classes: Sequence[str]) -> Figure:
    """Draw the confusion matrix of each model. If there are few classes, two matrices are side by side.

    Rows of the counts [classes, classes] are true classes. The number in a cell is a percentage of the shapes of the
    true class. Numbers below 1 are not drawn. The shade is the square root of the share, so that single errors are
    visible.
    """
    across = 2 if len(classes) <= FEW_CLASSES and len(counts) > 1 else 1
    size = float(np.clip(260 / max(len(classes), 1), 4.6, 8.0))
    shown = [plain_label(shorten(name, WIDEST_CLASS, size)) for name in classes]
    numbers = next(iter(counts.values())).sum(axis=1)
    rows = [f"{name}  {count:,}" for name, count in zip(shown, numbers, strict=True)]
    names = LETTER * size * max(map(len, rows), default=0)
    side = (WIDTH - names - 0.3 * across) / across
    letters = max(20, int(side / (LETTER * 9.5)))
    titles = [textwrap.fill(plain_label(shorten(label, 3 * side, 9.5)), letters) for label in counts]
    title = 0.25 + 0.17 * max(each.count("\n") for each in titles)
    figure, panels = make_panels(len(counts), across, title + side + names)
    for index, (axes, matrix) in enumerate(zip(panels, counts.values(), strict=True)):
        _draw(axes, matrix, shown, [] if index % across else rows, size, 72 * side)
        axes.set_title(titles[index], loc="left", fontsize=9, fontweight="bold")
    return figure


def _draw(
    axes: Axes, counts: NDArray[np.int64], classes: Sequence[str], rows: Sequence[str], size: float, side: float
) -> None:
    """Draw one matrix on square axes whose side is `side` typographic points."""
    many = len(classes)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    letter = min(7.5, 0.55 * side / max(many, 1))
    shades = np.sqrt(shares)
    colors = np.where(np.eye(many, dtype=bool)[..., None], to_rgb(RIGHT), to_rgb(WRONG))
    axes.imshow(np.dstack([colors, shades]), interpolation="nearest")
    for i, j in np.argwhere(np.round(100 * shares) >= 1).tolist():
        ink = "#fefefe" if shades[i, j] > 0.6 else INK  # #ffffff would become dark in the dark scheme of a report
        axes.text(j, i, f"{100 * shares[i, j]:.0f}", fontsize=letter, color=ink, ha="center", va="center_baseline")
    axes.set_xticks(range(many), classes, rotation=90, fontsize=size)
    axes.set_yticks(range(many), rows or [""] * many, fontsize=size)
    axes.set_xticks(np.arange(many + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(many + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#eeeeee", lw=0.4)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelcolor=INK)
    axes.spines[:].set(color="#bbbbbb", linewidth=0.6)
