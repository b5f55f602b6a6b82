"""Predicted numbers against true numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError, quoted
from pointset.inputs import InputError, described
from pointset.viz.charts import COLORS
from pointset.viz.sheet import FAINT, INK, LETTER, MARGIN, Sheet, shorten

if TYPE_CHECKING:
    from pointset.viz.sheet import Picture

WIDTH, LARGEST_PANEL, TOP, HEADER, LEFT, BELOW, GAP = 8.6, 2.4, 0.68, 0.2, 0.45, 0.42, 0.08


def draw_predictions(
    truth: Any, predictions: Mapping[str, Any], *, quantity: str = "value", title: str = "Predicted against true"
) -> Picture:
    """Draw one panel per model with equal axes: one dot per set, and the line of exact predictions.

    Args:
        truth: [N], the true number of each set.
        predictions: predictions [N] of each model, by its name.
        quantity: name of the number, for the axes.
        title: title of the picture.

    Raises:
        PointsetError: there is no model or no set, or a model does not have one number per set.

    Example:
        >>> len(pointset.viz.draw_predictions([1.0, 2.0, 3.0], {"mine": [1.1, 1.8, 3.2]}).axes)
        1
    """
    true = _numbers("truth", truth)
    models = {name: _numbers(name, values) for name, values in predictions.items()}
    if not models or not len(true):
        raise PointsetError(f"give at least one set and one model, got {len(true)} sets and {len(models)} models")
    for name, values in models.items():
        if len(values) != len(true):
            raise PointsetError(f"{quoted(name)} has {len(values)} numbers for {len(true)} sets: give one per set")
    side = min((WIDTH - 2 * MARGIN - LEFT) / len(models) - GAP, LARGEST_PANEL)
    sheet = Sheet(2 * MARGIN + LEFT + len(models) * (side + GAP), TOP + HEADER + side + BELOW + MARGIN / 2)
    sheet.heading(title, f"a dot for each of {len(true):,} sets; line: prediction = truth")
    everything = np.concatenate([true, *models.values()])
    low, high = float(everything.min()), float(everything.max())
    room = 0.04 * (high - low) or 1.0
    for column, (name, values) in enumerate(models.items()):
        left = MARGIN + LEFT + column * (side + GAP)
        error = f": mean error {np.abs(values - true).mean():.3g}"
        label = shorten(name, side - LETTER * 8 * len(error), 8.0) + error
        sheet.text(left + side / 2, TOP, label, 8.0, ha="center")
        axes = sheet.square(left, TOP + HEADER, side, low - room, high + room)
        axes.plot([low, high], [low, high], color=INK, linewidth=0.6, zorder=1)
        color = COLORS[column % len(COLORS)]
        axes.scatter(true, values, s=4, color=color, alpha=0.35, linewidths=0, rasterized=True, zorder=2)
        axes.tick_params(bottom=True, left=True, labelbottom=True, labelleft=column == 0)
        axes.tick_params(labelsize=7, length=2, labelcolor=FAINT)
        axes.set_xlabel(f"true {quantity}", fontsize=7.5, color=FAINT)
        if column == 0:
            axes.set_ylabel(f"predicted {quantity}", fontsize=7.5, color=FAINT)
    return sheet.picture


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=float).ravel()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers [N], one for each set, got {described(values)}") from error
