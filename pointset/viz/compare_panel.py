"""Comparisons: ways of pooling on one shape, and inducing points of a trained and an untrained model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.camera import Camera
from pointset.viz.charts import COLORS
from pointset.viz.color import CountScale, Scale, SignedScale, scale_for
from pointset.viz.grid import Frame, Grid, Line, Panel
from pointset.viz.rows import as_cloud, as_numbers
from pointset.viz.sheet import FAINT, INK, MARGIN, Picture, Sheet


def draw_pooling_comparison(
    points: Any,
    *,
    critical: Any = None,
    pools: Any = None,
    influence: Any = None,
    camera: Camera | None = None,
    colors: str | None = None,
    notes: Mapping[str, str] | None = None,
    title: str = "Which points the pooling uses",
) -> Picture:
    """Draw up to three measures of the importance of points side by side, each with its own colour bar.

    Args:
        points: [n, 3], one cloud.
        critical: [n], the number of features for which a max pooling selects each point.
        pools: [n], the attention of a seed of PMA over the points; sums to 1.
        influence: [n], the decrease of the class score when a point is removed.
        camera: the camera of all panels.
        colors: name of a matplotlib colour map for the first two.
        notes: texts above panels, such as {"influence": "rank correlation with PMA 0.2"}.
        title: title of the picture.

    Raises:
        PointsetError: none of the three is given, or one does not have n finite values.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> seed = pools.weights.mean(dim=0)[0]
        >>> len(pointset.viz.draw_pooling_comparison(points, pools=seed).axes) >= 1
        True
    """
    cloud, camera, notes = as_cloud(points), camera or Camera(), notes or {}
    measures = {"critical": critical, "pools": pools, "influence": influence}
    vectors = {name: _vector(name, values, len(cloud)) for name, values in measures.items() if values is not None}
    if not vectors:
        raise PointsetError("give at least one of critical, pools and influence: got none")
    described = {name: _described(name, vector, colors) for name, vector in vectors.items()}
    headings = {"critical": "max: critical points", "pools": "PMA: attention", "influence": "occlusion: influence"}
    panels = [
        Panel(cloud, values, scale, headings[name], notes.get(name, note))
        for name, (values, scale, note, _) in described.items()
    ]
    grid = Grid([Line("", panels)], Frame.around([cloud], camera), camera, width=max(3.2 * len(panels), 5.0))
    sheet = grid.draw(title, "one shape, one camera; each panel has its own scale", below=0.75)
    for column, (name, (_, scale, _, label)) in enumerate(described.items()):
        left = grid.corner(0, column)[0] + 0.35
        sheet.text(left - 0.2, grid.bottom + 0.08, label, 7.5, color=FAINT)
        sheet.bar(scale, left, grid.bottom + 0.3, grid.panel_width - 0.75, "", uniform=name == "pools")
    return sheet.picture


def _described(name: str, values: NDArray[np.float64], colors: str | None) -> tuple[NDArray[Any], Scale, str, str]:
    """The values to draw, their scale, the note above the panel and the label of the colour bar."""
    if name == "critical":
        selected = int((values > 0).sum())
        scale: Scale = CountScale(max(int(values.max()), 1), **({"name": colors} if colors else {}))
        return values, scale, f"{selected} of {len(values)} points", "features that select the point"
    if name == "pools":
        if not np.isclose(values.sum(), 1, atol=1e-3):
            raise PointsetError(f"pools sums to {values.sum():.4g}: give one row of attention, which sums to 1")
        relative = values * len(values)
        share = np.sort(values)[-int(np.ceil(0.05 * len(values))) :].sum()
        return relative, scale_for(relative, colors), f"top 5 % get {share:.0%}", "attention, times its uniform value"
    reach = float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
    return values, SignedScale(reach), f"largest {values.max():+.2g}", "fall of the class score without the point"


def _vector(name: str, values: Any, n: int) -> NDArray[np.float64]:
    vector = as_numbers(name, values)
    if vector.shape != (n,):
        raise PointsetError(f"{name} must have one value per point, [{n}], got {list(vector.shape)}")
    if not np.isfinite(vector).all():
        raise PointsetError(f"{name} has a value that is not finite, at point {int(np.argmin(np.isfinite(vector)))}")
    return vector


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

    Example:
        >>> trained, control = {"entropy": np.full((4, 16), 0.6)}, {"entropy": np.full((4, 16), 0.99)}
        >>> len(pointset.viz.draw_specialisation(trained, control).axes) >= 1
        True
    """
    if not trained or set(trained) != set(control):
        names = f"{', '.join(trained) or 'none'} and {', '.join(control) or 'none'}"
        raise PointsetError(f"trained and control must have the same measures, at least one, got {names}")
    width, left = 2.35, 0.55
    sheet = Sheet(max(left + width * len(trained) + MARGIN, 4.0), 3.9)
    sheet.heading(title, "one dot per head (colour) and inducing point; bar: median")
    heads = 1
    for column, name in enumerate(trained):
        axes = sheet.axes(left + column * width, 1.15, width - 0.55, 2.15)
        pair = [np.atleast_2d(np.asarray(values[name], dtype=np.float64)) for values in (trained, control)]
        heads = max(heads, *(len(values) for values in pair))
        _draw_measure(axes, pair)
        sheet.text(left + column * width, 0.70, name, 9, weight="bold")
        sheet.text(left + column * width, 0.90, (descriptions or {}).get(name, ""), 7, color=FAINT)
    for head in range(heads if heads > 1 else 0):
        sheet.text(left + 0.7 * head, 3.8, f"● head {head}", 7.5, color=COLORS[head % len(COLORS)], va="bottom")
    return sheet.picture


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
    axes.set_xticks([0, 1], ["trained", "untrained"], fontsize=8)
    axes.tick_params(axis="y", labelsize=7, length=2)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
