"""Confusion matrices as shades and numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from pointset.viz.charts import WIDTH, plain
from pointset.viz.color import COLORS, FAINT, INK
from pointset.viz.sheet import LETTER, Sheet, shorten, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, WRONG = COLORS[0], COLORS[1]
FEW = 12
"""Largest number of classes for which two matrices are drawn side by side."""
LONGEST = 1.8
"""Largest width of a class name, in inches."""
BAR = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Shares shown on the colour bar."""


def stand_together(classes: Sequence[str]) -> bool:
    """True if two matrices of these classes are drawn side by side."""
    return len(classes) <= FEW


def draw_confusions(counts: Mapping[str, NDArray[np.int64]], classes: Sequence[str]) -> Figure:
    """Draw one matrix for each model, two side by side if there are few classes.

    The shade of a cell is the square root of its share of the true class, so that single mistakes are visible. Its
    number is that share in per cent, if at least 1 per cent.

    Args:
        counts: for each model, counts [classes, classes] with true classes as rows.
        classes: names of the classes; long ones are shortened.
    """
    across = 2 if stand_together(classes) and len(counts) > 1 else 1
    size = float(np.clip(260 / max(len(classes), 1), 4.6, 8.0))
    shown = [plain(shorten(name.replace("_", " "), LONGEST, size)) for name in classes]
    numbers = next(iter(counts.values())).sum(axis=1)
    rows = [f"{name}  {count:,}" for name, count in zip(shown, numbers, strict=True)]
    left = 0.25 + max((text_width(row, size) for row in rows), default=0)
    below = 0.2 + max((text_width(name, size) for name in shown), default=0)
    side = (WIDTH - left - 0.1 - (across - 1) * 0.25) / across
    titles = [textwrap.wrap(shorten(label, 3 * side, 9.5), max(20, int(side / (LETTER * 9.5)))) for label in counts]
    title = 0.14 + 0.17 * max(map(len, titles))
    down = -(-len(counts) // across)
    sheet = Sheet(WIDTH, down * (title + side + below + 0.1) + 0.4)
    for index, (words, matrix) in enumerate(zip(titles, counts.values(), strict=True)):
        line, column = divmod(index, across)
        x, y = left + column * (side + 0.25), title + line * (title + side + below + 0.1)
        _draw(sheet.axes(x, y, side, side), matrix, shown, rows if column == 0 else [], size, 72 * side)
        sheet.text(x, y - 0.06, "\n".join(words), 9, va="bottom", weight="bold")
    _bar(sheet, min(left, 1.0), sheet.height - 0.36)
    return sheet.picture


def _draw(
    axes: Axes,
    counts: NDArray[np.int64],
    classes: Sequence[str],
    rows: Sequence[str],
    size: float,
    side: float,
) -> None:
    """One matrix on square axes of `side` points."""
    many = len(classes)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    letter = min(7.5, 0.55 * side / max(many, 1))
    _cells(axes, shares, np.eye(many, dtype=bool), np.argwhere(np.round(100 * shares) >= 1).tolist(), letter)
    axes.set_xticks(range(many), classes, rotation=90, fontsize=size)
    axes.set_yticks(range(many), rows or [""] * many, fontsize=size)
    axes.set_xticks(np.arange(many + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(many + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#eeeeee", lw=0.4)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, labelcolor=INK)
    axes.spines[:].set(color="#bbbbbb", linewidth=0.6)


def _cells(axes: Axes, shares: Any, right: Any, numbered: Any, size: float) -> None:
    """Cells [rows, columns] of right and wrong predictions, shaded by the square root of their shares."""
    shades = np.sqrt(shares)[..., None]
    colors = np.where(right[..., None], to_rgb(RIGHT), to_rgb(WRONG))
    axes.imshow(np.concatenate([colors, shades], axis=2), aspect="auto", interpolation="nearest")
    for i, j in numbered:
        ink = "#fefefe" if shades[i, j] > 0.6 else INK  # #ffffff would become dark in the dark scheme of a report
        text = f"{100 * shares[i, j]:.0f}"
        axes.text(j, i, text, fontsize=size, color=ink, ha="center", va="center_baseline")


def _bar(sheet: Sheet, left: float, top: float) -> None:
    """Draw the colour bar: a row of shares for right and one for wrong predictions, with labels."""
    cell, height = 0.42, 0.14
    axes = sheet.axes(left, top, cell * len(BAR), 2 * height)
    right = np.array([[True], [False]]).repeat(len(BAR), axis=1)
    _cells(axes, np.array([BAR, BAR]), right, np.argwhere(right | ~right).tolist(), 6.5)
    axes.set_axis_off()
    beside = left + cell * len(BAR) + 0.1
    sheet.text(beside, top + 0.01, "right: % of the true class, with its number of shapes", 7, color=FAINT)
    sheet.text(beside, top + height + 0.01, "wrong: % of the true class predicted as the class below", 7, color=FAINT)
