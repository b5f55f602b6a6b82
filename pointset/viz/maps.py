"""Still pictures of attention maps and of the importance of points. On scales of attention, 1 is uniform attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from pointset.arguments import suggests
from pointset.configuration import check
from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.viz.camera import Camera, Up, camera_of
from pointset.viz.charts import Picture, shorten
from pointset.viz.clouds import Line, Panel, add_bar, draw_lines
from pointset.viz.color import Scale, scale_for, signed_scale
from pointset.viz.rows import MEANINGS, PointRows, as_cloud, chosen_rows, cloud_of, finite_numbers, point_rows

MOST_PANELS = 8
BAR_LABEL = "attention relative to uniform attention (1 = uniform)"
ENTROPY_TEXT = "small number: entropy (1 = uniform, 0 = one point)"
PaperWidth = Literal["column", "page"]
PAPER_WIDTHS = {"column": 3.25, "page": 6.75}
"""Widths of a column and of a page of a paper, in inches."""


@suggests
def draw_maps(
    attention: AttentionMap,
    points: Any = None,
    *,
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str | None = None,
    width: PaperWidth | None = None,
) -> Picture:
    """Draw one attention on one cloud [n, 3]: one panel for each head and query, all with the same colour scale.

    Args:
        attention: a map of one cloud. For kind "writes", a panel shows how much each point reads one inducing point.
        points: [n, 3], the cloud for which the map was computed. None means `attention.points`.
        heads: indices of the heads. None means all.
        queries: indices of inducing points, seeds or (for kind "self") points. None means all, or 8 points far apart.
        up: the upward axis of the points. None means the axis of the camera, or of the model's preparation.
        camera: the camera of all panels.
        title: title of the picture.
        width: "column" (3.25 inches) or "page" (6.75 inches) for a figure of a paper, without title and note.

    Raises:
        PointsetError: the map is not of this cloud, or the head or query does not exist.
    """
    cloud = cloud_of(points, attention)
    rows, camera = point_rows(attention, cloud), camera_of(camera, up, getattr(attention, "up", "z"))
    chosen_heads, chosen = rows.chosen(0, heads), chosen_rows(rows, cloud, queries, MOST_PANELS)
    scale = scale_for(rows.values[np.ix_(chosen_heads, chosen)])
    panel = partial(_panel, rows, cloud, scale)
    one_head, lines = len(rows.values) == 1, []

    def label_of(head: int) -> str:
        return "" if one_head else f"head {head}"

    if len(chosen) >= max(len(chosen_heads), 2):
        for head in chosen_heads:
            lines += _lines([panel(head, row, f"{row}") for row in chosen], label_of(head))
        per = rows.row_name if one_head else f"head and {rows.row_name}"
        note = f"one panel per {per}; {ENTROPY_TEXT}"
    else:  # more heads than rows: a wide picture is easier to read than a tall one
        for row in chosen:
            label = f"{rows.row_name.split()[-1]} {row}" if len(chosen) > 1 else ""
            lines += _lines([panel(head, row, label_of(head)) for head in chosen_heads], label)
        each = f" and {rows.row_name}" if len(chosen) > 1 else f", {rows.row_name} {chosen[0]}"
        note = f"one panel per head{each}; {ENTROPY_TEXT}"
    return _finished(lines, camera, title or f"{rows.layer}: {MEANINGS[rows.kind]}", note, scale, width)


def draw_reads_and_writes(
    reads: AttentionMap,
    writes: AttentionMap,
    points: Any = None,
    *,
    head: int = 0,
    queries: Sequence[int] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str | None = None,
    width: PaperWidth | None = None,
) -> Picture:
    """Draw both maps of one ISAB: what each inducing point attends to, and below, which points attend to it.

    Args:
        reads: the map of kind "reads" of one cloud.
        writes: the map of kind "writes" of the same block and cloud.
        points: as in `draw_maps`.
        head: index of the head in both maps, although heads of the two maps are not related.
        queries: indices of inducing points. None means the one of lowest entropy (the sharpest), and 5 others that
            differ most from this one and from each other.
        up, camera, title, width: see `draw_maps`.

    Raises:
        PointsetError: the maps are not of kinds "reads" and "writes", the maps are not of this cloud, or the head or
            query does not exist.
    """
    if (reads.kind, writes.kind) != ("reads", "writes"):
        raise PointsetError(f"give a map of kind reads and then one of kind writes, got {reads.kind} and {writes.kind}")
    cloud, camera = cloud_of(points, reads), camera_of(camera, up, reads.up)
    both = point_rows(reads, cloud), point_rows(writes, cloud)
    both[0].chosen(0, [head])
    chosen = chosen_rows(both[0], cloud, _unlike(both[0], head, 6) if queries is None else queries, MOST_PANELS)
    scale = scale_for(np.concatenate([side.values[head, chosen] for side in both]))
    lines = []
    for side in both:
        panels = [_panel(side, cloud, scale, head, row, f"{row}") for row in chosen]
        lines += _lines(panels, side.kind)
    title = title or f"{reads.layer}, {writes.layer}: what inducing points read, and which points read them back"
    note = f"one column per inducing point of head {head}; {ENTROPY_TEXT}"
    return _finished(lines, camera, title, note, scale, width)


@suggests
def draw_instances(
    maps: Sequence[AttentionMap],
    clouds: Sequence[Any] | None = None,
    head: int = 0,
    query: int | Sequence[int] = 0,
    *,
    names: Sequence[str] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str | None = None,
    width: PaperWidth | None = None,
) -> Picture:
    """Draw one head and one or several queries of the same attention on several shapes, such as instances of a class.

    Args:
        maps: one map per cloud, all of the same layer.
        clouds: clouds [n_i, 3], each scaled to its panel. None means the attribute `points` of each map.
        head: index of the head.
        query: index of the inducing point or seed, or several indices. Each has one line of panels.
        names: one name per cloud, drawn above it.
        up, camera, title, width: see `draw_maps`.

    Raises:
        PointsetError: there are no clouds, the numbers of maps, names and clouds differ, the maps are of different
            layers, or the head or query does not exist.

    Example:
        >>> maps = [pointset.find_map(pointset.attention_maps(model, cloud), kind="pools") for cloud in test.points[:3]]
        >>> picture = pointset.viz.draw_instances(maps, test.points[:3], width="column")
        >>> pointset.viz.save(picture, "figure.pdf").name
        'figure.pdf'
    """
    clouds = [None] * len(maps) if clouds is None else clouds
    if not len(maps) or len(maps) != len(clouds) or len(names or maps) != len(maps):
        counts = f"{len(maps)} maps, {len(clouds)} clouds" + (f" and {len(names)} names" if names else "")
        raise PointsetError(f"give one map (and one name) per cloud, and at least one, got {counts}")
    if len(layers := dict.fromkeys(attention.layer for attention in maps)) > 1:
        raise PointsetError(f"the maps are of different layers ({', '.join(layers)}): give maps of one layer")
    camera = camera_of(camera, up, maps[0].up)
    shapes = [cloud_of(cloud, attention) for cloud, attention in zip(clouds, maps, strict=True)]
    rows_of = [point_rows(attention, cloud) for attention, cloud in zip(maps, shapes, strict=True)]
    queries = [query] if isinstance(query, int) else list(query)
    scale = scale_for(np.concatenate([rows.of(head, one) for rows in rows_of for one in queries]))
    lines, first, several = [], rows_of[0], len(queries) > 1
    for number, one in enumerate(queries):
        labels = (names or [""] * len(shapes)) if number == 0 else [""] * len(shapes)
        panels = [
            _panel(rows, cloud, scale, head, one, name)
            for rows, cloud, name in zip(rows_of, shapes, labels, strict=True)
        ]
        lines += _lines(panels, f"{first.row_name.split()[-1]} {one}" if several else "")
    named = f"{first.row_name}{'s' * several} {', '.join(map(str, queries))}"
    title = title or f"{first.layer}, head {head}, {named}, on {len(shapes)} shapes"
    return _finished(lines, camera, title, f"{MEANINGS[first.kind]}; {ENTROPY_TEXT}", scale, width)


def draw_sharpest(
    models: Mapping[str, PointRows], cloud: NDArray[np.float64], *, camera: Camera, title: str
) -> Picture:
    """Draw the sharpest maps of one attention of each model on one cloud, with a line of panels for each model."""
    scale, lines = scale_for(np.concatenate([rows.values.ravel() for rows in models.values()])), []
    for name, rows in models.items():
        places = np.argsort(rows.entropy, axis=None)[:MOST_PANELS].tolist()
        pairs = [divmod(place, rows.entropy.shape[1]) for place in places]
        panels = [_panel(rows, cloud, scale, head, row, f"{head} · {row}") for head, row in pairs]
        lines.append(Line(shorten(name, 1.3, 7.5), panels))
    row_name = next(iter(models.values())).row_name
    note = f"the sharpest maps of each model: head · {row_name}; {ENTROPY_TEXT}"
    return _finished(lines, camera, title, note, scale, None)


def _finished(
    lines: Sequence[Line], camera: Camera, title: str, note: str, scale: Scale, width: PaperWidth | None
) -> Picture:
    """Return a picture of lines of panels with one colour bar. With `width`, it has no title, note or entropies."""
    if width is not None:
        check("width", width, PaperWidth)
        lines = [Line(line.label, [replace(panel, note="") for panel in line.panels]) for line in lines]
        title = note = ""
    picture = draw_lines(lines, camera, title, note, None if width is None else PAPER_WIDTHS[width])
    add_bar(picture, picture.axes, scale, BAR_LABEL)
    return picture


def draw_importance(
    points: Any,
    values: Mapping[str, Any],
    *,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str = "Importance of points",
) -> Picture:
    """Draw several measures of the importance of points side by side, each with a separate colour bar.

    A measure with negative values, such as `occlusion_influence`, has a linear scale. Other measures, such as attention
    or `critical_points`, are divided by their mean and have the logarithmic scale of attention.

    Args:
        points: [n, 3], one cloud.
        values: the importance [n] of each point for each measure, by the title of its panel.
        up: the upward axis of the points. None means the axis of the camera.
        camera: the camera of all panels.
        title: title of the picture.

    Raises:
        PointsetError: there is no measure, or a measure does not have n finite values.
    """
    cloud, camera = as_cloud(points), camera_of(camera, up, "z")
    if not values:
        raise PointsetError("values are missing: give at least one measure of importance")
    panels = [_importance(name, vector, cloud) for name, vector in values.items()]
    picture = draw_lines([Line("", panels)], camera, title, "one shape, one camera; each panel has its own scale")
    for axes, panel in zip(picture.axes, panels, strict=True):
        add_bar(picture, [axes], panel.scale, "share (1 = equal)" if panel.scale.has_rings else "change")
    return picture


def _importance(name: str, values: Any, cloud: NDArray[np.float64]) -> Panel:
    vector, n = finite_numbers(name, values), len(cloud)
    if vector.shape != (n,):
        raise PointsetError(f"{name} must have one value per point, [{n}], got {list(vector.shape)}")
    if not np.isfinite(vector).all():
        raise PointsetError(f"{name} has a value that is not finite, at point {int(np.argmin(np.isfinite(vector)))}")
    if (vector < 0).any():
        reach = float(np.quantile(np.abs(vector), 0.99)) or float(np.abs(vector).max())
        return Panel(cloud, vector, signed_scale(reach), name, f"largest {vector.max():+.2g}")
    shares = vector * n / (vector.sum() or 1.0)
    top = np.sort(shares)[-int(np.ceil(0.05 * n)) :].sum() / n
    return Panel(cloud, shares, scale_for(shares), name, f"top 5 % get {top:.0%}")


def _unlike(rows: PointRows, head: int, most: int) -> list[int]:
    """Return, sorted, the sharpest row of a head and further rows. Each is most distant from those chosen before."""
    chosen = [int(rows.entropy[head].argmin())]
    distances = cdist(rows.values[head], rows.values[head], "cityblock")
    while len(chosen) < min(most, len(distances)):
        distances[:, chosen[-1]] = -1.0  # so that no row is chosen twice
        chosen.append(int(distances[chosen].min(axis=0).argmax()))
    return sorted(chosen)


def _panel(rows: PointRows, cloud: NDArray[np.float64], scale: Scale, head: int, row: int, name: str) -> Panel:
    return Panel(cloud, rows.values[head, row], scale, name, f"{rows.entropy[head, row]:.2f}", rows.mark(row))


def _lines(panels: Sequence[Panel], label: str = "") -> list[Line]:
    """Return panels in lines of nearly equal length, at most `MOST_PANELS` each. The first line has the label."""
    count = -(-len(panels) // MOST_PANELS)
    length = -(-len(panels) // count)
    starts = range(0, len(panels), length)
    return [Line("" if i else label, panels[i : i + length]) for i in starts]
