"""Labels per point: a page of clouds coloured by label, truth, error and entropy."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.camera import Camera, Up, to_unit
from pointset.viz.clouds import WIDTH, Grid, Line, Panel
from pointset.viz.color import COLORS, Scale
from pointset.viz.html_page import Page, page_without_scripts
from pointset.viz.rows import as_cloud
from pointset.viz.sheet import Picture
from pointset.viz.writing import as_svg

VIEWS = (-60.0, 120.0)
"""Azimuths from which a cloud is drawn."""
UNKNOWN = (0.8, 0.8, 0.8)
"""The colour of points without a label."""
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1100px; margin: 1rem auto }
main > svg { width: 100%; height: auto }
ul { list-style: none; padding: 0 1rem; columns: 9rem }
"""


@dataclass(frozen=True)
class ClassScale(Scale):
    """One colour for each of some classes, at the positions of their indices; grey for -1."""

    classes: int

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The index of each class, counted from 1, as a share of 255."""
        return (np.asarray(values, float) + 1) / 255

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same emphasis for all points."""
        return np.full(np.shape(values), 0.45)

    def ramp(self) -> NDArray[np.float64]:
        """Grey, then the colours of the classes, repeated up to 256."""
        return np.vstack([UNKNOWN, np.resize(class_colors(self.classes), (255, 3))])


@dataclass(frozen=True)
class ErrorScale(Scale):
    """Wrong points (1) stand out from right ones (0)."""

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values."""
        return np.asarray(values, float)

    def ramp(self) -> NDArray[np.float64]:
        """Grey to the colour of mistakes."""
        return np.linspace(UNKNOWN, to_rgb(COLORS[1]), 256)


@dataclass(frozen=True)
class EntropyScale(Scale):
    """Entropy from 0 to `most`."""

    most: float

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the largest possible entropy."""
        return np.clip(np.asarray(values, float) / self.most, 0, 1)


def class_colors(count: int) -> NDArray[np.float64]:
    """A colour for each class, [count, 3]: those of the package's charts, then those of a colour map."""
    if count <= len(COLORS):
        return np.array([to_rgb(color) for color in COLORS[:count]])
    return np.array([colormaps["tab20"](index % 20)[:3] for index in range(count)])


def make_label_page(
    points: Any,
    labels: NDArray[np.int64],
    classes: Sequence[str],
    *,
    entropy: NDArray[np.float64] | None = None,
    truth: NDArray[np.int64] | None = None,
    title: str = "Labels",
    up: Up = "z",
) -> Page:
    """Make a page with a cloud drawn from two sides for each of: predicted labels, truth, error and entropy.

    Args:
        points: [n, 3].
        labels: [n], indices of the predicted classes.
        classes: names of the classes.
        entropy: [n], of the predicted probabilities, in nats.
        truth: [n], indices of the true classes; -1 where it is not known.
        title: title of the page.
        up: the upward axis of the points.

    Returns:
        The page, one HTML file without scripts.

    Raises:
        PointsetError: the arrays differ in length, or the cloud is empty.

    Example:
        >>> page = pointset.viz.make_label_page(test.points[0], np.arange(32) % 2, ["seat", "leg"])
        >>> page.save("labels.html").stat().st_size > 10_000
        True
    """
    cloud = to_unit(as_cloud(points), up)
    for name, array in {"labels": labels, "entropy": entropy, "truth": truth}.items():
        if array is not None and len(array) != len(cloud):
            raise PointsetError(f"{name} must have an entry for each of the {len(cloud)} points, got {len(array)}")
    scale = ClassScale(len(classes))
    columns: list[tuple[str, Any, Scale]] = [("predicted", labels, scale)]
    if truth is not None:
        wrong = np.where(truth < 0, 0.0, labels != truth)
        known = int((truth >= 0).sum())
        share = f"wrong: {wrong.sum() / known:.1%} of {known:,}" if known else "no point has a label"
        columns += [("truth", truth, scale), (share, wrong, ErrorScale())]
    if entropy is not None:
        columns.append((f"entropy, mean {entropy.mean():.2f} nats", entropy, EntropyScale(float(np.log(len(classes))))))
    lines = []
    for azimuth in VIEWS:
        ready = _turned(cloud, azimuth - VIEWS[0])
        lines.append(Line("", [Panel(ready, np.asarray(values, float), how, name) for name, values, how in columns]))
    note = f"{len(cloud):,} points, from two sides"

    def draw() -> Picture:
        return Grid(lines, Camera(azimuth=VIEWS[0]), WIDTH, title, note, below=0.1).sheet.picture

    shown = np.unique(labels if truth is None else np.concatenate([labels, truth[truth >= 0]]))
    key = "".join(
        f'<li><svg width="12" height="12"><rect width="12" height="12" rx="2" fill="{to_hex(color)}"/></svg> '
        f"{html.escape(classes[index])}: {int((labels == index).sum()):,}</li>"
        for index, color in enumerate(class_colors(len(classes)))
        if index in shown
    )
    body = f"<main>{as_svg(draw(), 'labels')}<ul>{key}</ul></main>"
    return Page(html=page_without_scripts(title, STYLE, body), draw_still=draw)


def _turned(cloud: NDArray[np.float64], degrees: float) -> NDArray[np.float64]:
    """The cloud as a camera sees it that moved about the z axis."""
    angle = np.radians(-degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    return cloud @ np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
