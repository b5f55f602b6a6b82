"""Measures of inducing points of a trained model, beside those of an untrained one."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.charts import Picture, label_axes, make_panels, with_legend
from pointset.viz.color import COLORS, INK


def draw_specialisation(
    trained: Mapping[str, Any],
    control: Mapping[str, Any],
    *,
    descriptions: Mapping[str, str] | None = None,
    title: str = "Do inducing points specialise?",
) -> Picture:
    """Draw measures of each head and inducing point, for a trained and an untrained model.

    Args:
        trained: values [heads, inducing points] (or a vector) of each measure, by name.
        control: the same measures of the untrained model.
        descriptions: the meaning of measures, such as {"entropy": "1 = reads all points alike"}.
        title: title of the picture.

    Raises:
        PointsetError: the two do not have the same measures, or no measures.
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
