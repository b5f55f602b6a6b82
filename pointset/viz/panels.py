"""Still pictures of attention maps, with labelled colour scales in which 1 is uniform attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.viz.camera import Camera
from pointset.viz.color import Scale, scale_for
from pointset.viz.grid import Frame, Grid, Line, Panel
from pointset.viz.rows import MEANINGS, PointRows, as_cloud, chosen_rows, point_rows
from pointset.viz.sheet import Picture, Sheet

WIDTH = 9.5
"""Inches: the width of a notebook."""
MOST_COLUMNS = 8
BAR_LABEL = "attention, times its uniform value"
ENDS = "(1 = uniform, 0 = one point)"
NUMBERS = f"small number: spread {ENDS}"
DIFFER = "; differ: among the maps of a head (0 = alike, 1 = apart)"


def draw_map(
    attention: AttentionMap,
    points: Any,
    head: int = 0,
    query: int = 0,
    *,
    camera: Camera | None = None,
    colors: str | None = None,
    title: str | None = None,
) -> Picture:
    """Draw one cloud [n, 3], coloured by one head and one query (for "writes": one inducing point) of an attention.

    Args:
        attention, points, camera, colors, title: see `draw_maps`.
        head: index of the head.
        query: index of the inducing point, seed or point.

    Raises:
        PointsetError: as for `draw_maps`.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> picture = pointset.viz.draw_map(pools, points, head=1)
        >>> pointset.viz.save(picture, "pools.png").name
        'pools.png'
    """
    look: dict[str, Any] = {"camera": camera, "colors": colors, "title": title}
    return draw_maps(attention, points, heads=[head], queries=[query], **look)


def draw_maps(
    attention: AttentionMap,
    points: Any,
    *,
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    camera: Camera | None = None,
    colors: str | None = None,
    title: str | None = None,
) -> Picture:
    """Draw all heads and queries of one attention on one cloud [n, 3]: one panel each, with a common colour scale.

    Args:
        attention: a map of one cloud. For kind "writes", a panel shows which points read one inducing point back.
        points: [n, 3], the cloud for which the map was computed.
        heads: indices of the heads; None means all.
        queries: indices of inducing points, seeds or (for kind "self") points; None means all, or 8 distant points.
        camera: the camera of all panels.
        colors: name of a matplotlib colour map.
        title: title of the picture.

    Raises:
        PointsetError: cloud and map do not belong together, or there is no such head or query.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> len(pointset.viz.draw_maps(pools, points).axes) >= 4  # one panel per head
        True
    """
    cloud, camera = as_cloud(points), camera or Camera()
    rows = point_rows(attention, cloud)
    chosen_heads, chosen = rows.chosen_heads(heads), chosen_rows(rows, cloud, queries, MOST_COLUMNS)
    scale = scale_for(rows.values[np.ix_(chosen_heads, chosen)], colors)

    def panel(head: int, row: int, name: str) -> Panel:
        spread = f"{rows.spread[head, row]:.2f}" if name else ""
        return Panel(cloud, rows.values[head, row], scale, name, spread, rows.mark(row))

    if len(chosen_heads) == len(chosen) == 1:
        (head,), (row,) = chosen_heads, chosen
        lines, width = [Line("", [panel(head, row, "")])], 5.2
        note = f"head {head}, {rows.row_name} {row}; spread {rows.spread[head, row]:.2f} {ENDS}"
    elif len(chosen) >= max(len(chosen_heads), 2):
        difference = rows.difference(chosen)
        lines = [
            line
            for head in chosen_heads
            for line in _lines(
                f"head {head}", [panel(head, row, f"{row}") for row in chosen], f"differ\n{difference[head]:.2f}"
            )
        ]
        note, width = f"one panel per head and {rows.row_name}; {NUMBERS}{DIFFER}", WIDTH
    else:  # more heads than rows: wide pictures are easier to read than tall ones
        label = f"{rows.row_name.split()[-1]} {{}}" if len(chosen) > 1 else ""
        lines = [
            line
            for row in chosen
            for line in _lines(label.format(row), [panel(head, row, f"head {head}") for head in chosen_heads])
        ]
        each = f" and {rows.row_name}" if len(chosen) > 1 else f", {rows.row_name} {chosen[0]}"
        note, width = f"one panel per head{each}; {NUMBERS}", WIDTH
    grid = Grid(lines, Frame.around([cloud], camera), camera, width)
    return _with_bar(grid.draw(title or f"{rows.layer}: {MEANINGS[rows.kind]}", note, below=0.42), scale, grid)


def draw_reads_and_writes(
    reads: AttentionMap,
    writes: AttentionMap,
    points: Any,
    *,
    head: int = 0,
    queries: Sequence[int] | None = None,
    camera: Camera | None = None,
    colors: str | None = None,
    title: str | None = None,
) -> Picture:
    """Draw both maps of one ISAB: what inducing points read, and below it which points read them back.

    Args:
        reads: the map of kind "reads" of one cloud.
        writes: the map of kind "writes" of the same block and cloud.
        points: [n, 3], the cloud for which the maps were computed.
        head: index of the head. (The heads of the two maps are independent.)
        queries: indices of inducing points; None means the sharpest, and 5 that differ most from those before.
        camera, colors, title: see `draw_maps`.

    Raises:
        PointsetError: the maps are not of kinds "reads" and "writes" or do not fit the cloud, or there is no such
            head or query.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> reads, writes = (pointset.find_map(maps, layer=f"encoder.0.{kind}") for kind in ("reads", "writes"))
        >>> len(pointset.viz.draw_reads_and_writes(reads, writes, points, queries=[0, 1]).axes) >= 4
        True
    """
    if (reads.kind, writes.kind) != ("reads", "writes"):
        raise PointsetError(f"give a map that reads and then one that writes, got {reads.kind} and {writes.kind}")
    cloud, camera = as_cloud(points), camera or Camera()
    both = point_rows(reads, cloud), point_rows(writes, cloud)
    both[0].check(head, 0)
    chosen = chosen_rows(both[0], cloud, _unlike(both[0], head, 6) if queries is None else queries, MOST_COLUMNS)
    lines, scales = [], [scale_for(rows.values[head, chosen], colors) for rows in both]
    for rows, scale in zip(both, scales, strict=True):
        name = "point {}" if rows.kind == "reads" else "who reads {}"
        panels = [
            Panel(cloud, rows.values[head, i], scale, name.format(i), f"{rows.spread[head, i]:.2f}") for i in chosen
        ]
        lines.append(Line(rows.kind, panels, f"differ\n{rows.difference(chosen)[head]:.2f}" if len(chosen) > 1 else ""))
    grid = Grid(lines, Frame.around([cloud], camera), camera, WIDTH)
    title = title or f"{reads.layer}, {writes.layer}: what inducing points read, and who reads them back"
    sheet = grid.draw(title, f"head {head}; {NUMBERS}{DIFFER}", below=0.42)
    sheet.bar(scales[0], 1.65, grid.bottom + 0.06, 2.7, "reads: weight x points")
    sheet.bar(scales[1], 6.6, grid.bottom + 0.06, 2.7, "writes: weight x inducing points")
    return sheet.picture


def draw_instances(
    maps: Sequence[AttentionMap],
    clouds: Sequence[Any],
    head: int = 0,
    query: int = 0,
    *,
    names: Sequence[str] | None = None,
    camera: Camera | None = None,
    colors: str | None = None,
    title: str | None = None,
) -> Picture:
    """Draw one head and one query of the same attention on several shapes, such as instances of a class.

    Args:
        maps: one map per cloud, all of the same layer.
        clouds: clouds [n_i, 3]; each is scaled to its panel.
        head: index of the head.
        query: index of the inducing point or seed.
        names: one name per cloud, drawn above it.
        camera, colors, title: see `draw_maps`.

    Raises:
        PointsetError: there is no cloud, the numbers of maps, names and clouds differ, the maps are of different
            layers, or there is no such head or query.

    Example:
        >>> clouds = test.points[:2]
        >>> maps = [pointset.find_map(pointset.attention_maps(model, points), kind="pools") for points in clouds]
        >>> len(pointset.viz.draw_instances(maps, clouds, head=1).axes) >= 2
        True
    """
    if not len(maps) or len(maps) != len(clouds) or len(names or maps) != len(maps):
        counts = f"{len(maps)} maps, {len(clouds)} clouds" + (f" and {len(names)} names" if names else "")
        raise PointsetError(f"give one map (and one name) per cloud, and at least one, got {counts}")
    if len(layers := dict.fromkeys(attention.layer for attention in maps)) > 1:
        raise PointsetError(f"the maps are of different layers ({', '.join(layers)}): give those of one")
    camera, shapes = camera or Camera(), [as_cloud(cloud) for cloud in clouds]
    rows_of = [point_rows(attention, cloud) for attention, cloud in zip(maps, shapes, strict=True)]
    for rows in rows_of:
        rows.check(head, query)
    scale = scale_for(np.concatenate([rows.values[head, query] for rows in rows_of]), colors)
    panels = [
        Panel(cloud, rows.values[head, query], scale, name, f"{rows.spread[head, query]:.2f}")
        for cloud, rows, name in zip(shapes, rows_of, names or [""] * len(shapes), strict=True)
    ]
    grid = Grid(_lines("", panels), Frame.around(shapes, camera), camera, WIDTH)
    first = rows_of[0]
    title = title or f"{first.layer}, head {head}, {first.row_name} {query}, on {len(panels)} shapes"
    return _with_bar(grid.draw(title, f"{MEANINGS[first.kind]}; {NUMBERS}", below=0.42), scale, grid)


def _unlike(rows: PointRows, head: int, most: int) -> list[int]:
    """The sharpest row of a head, and further rows, each the most distant from those chosen before; sorted."""
    shares = rows.shares[head]
    chosen = [int(rows.spread[head].argmin())]
    distances = cdist(shares, shares, "cityblock")
    while len(chosen) < min(most, len(shares)):
        distances[:, chosen[-1]] = -1.0  # so that no row is chosen twice
        chosen.append(int(distances[chosen].min(axis=0).argmax()))
    return sorted(chosen)


def _lines(label: str, panels: Sequence[Panel], note: str = "") -> list[Line]:
    """Panels in lines of nearly equal length, at most `MOST_COLUMNS` each; the first has the label and the note."""
    count = -(-len(panels) // MOST_COLUMNS)
    length = -(-len(panels) // count)
    starts = range(0, len(panels), length)
    return [Line("" if i else label, panels[i : i + length], "" if i else note) for i in starts]


def _with_bar(sheet: Sheet, scale: Scale, grid: Grid) -> Picture:
    """The picture with its colour bar at the right."""
    width = min(4.1, sheet.width - 2.3)
    sheet.bar(scale, sheet.width - width - 0.3, grid.bottom + 0.06, width, BAR_LABEL)
    return sheet.picture
