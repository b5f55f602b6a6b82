"""An interactive page: all maps of a layer turn together in one canvas. One HTML file, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError, quoted
from pointset.explain.faithfulness import REMOVED_SHARES, Curves
from pointset.explain.maps import AttentionMap
from pointset.viz.camera import Camera, Up, camera_of, to_unit
from pointset.viz.color import COLORS, HOLLOW, attention_scale, reach_of
from pointset.viz.html_page import WEB, Page, as_base64, page_of, view_content
from pointset.viz.maps import draw_maps
from pointset.viz.rows import MEANINGS, PointRows, as_cloud, chosen_rows, point_rows

MOST_CHOSEN = 16
CLASSES_SHOWN = 5
UNIFORM = 0.98
"""Maps with at least this entropy are nearly uniform."""
SHARPEST = 8
"""Layers are compared by the mean entropy of this number of their sharpest maps."""
WEIGHT_STEPS = 2**16 - 1
LEAST_EXPONENT = -20
"""Weights below 2^-20 of uniform attention are shown as 2^-20, except exact zeros."""


def make_page(
    maps: AttentionMap | Sequence[AttentionMap],
    points: Any,
    *,
    title: str = "Attention",
    prediction: str = "",
    classes: Sequence[tuple[str, float]] = (),
    layer: str | None = None,
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
    checks: Mapping[str, Curves] | None = None,
) -> Page:
    """Make a page of all maps on one cloud [n, 3].

    Args:
        maps: maps of one cloud; those among pooled vectors are omitted.
        points: [n, 3], the cloud for which the maps were computed.
        title: title of the page.
        prediction: a line under the title, such as "predicted: chair (93 %)".
        classes: names and probabilities, most probable first; the first 5 are shown as bars.
        layer: the layer that the page opens with. None means the pooling if its maps are not nearly uniform, else the
            layer with the sharpest maps; with `queries`, the last layer of kind "reads".
        heads: indices of the heads; None means all.
        queries: indices of inducing points, seeds or points of the opening layer, and of other layers with the same
            kind and number of rows; None means all, or 16 distant points if the queries are points.
        up: the upward axis of the points; None means that of the camera, or of the model's preparation.
        camera: the first view.
        checks: curves of explanations, as `pointset.explain.faithfulness.check_explanations` gives them, to be drawn
            below the maps.

    Returns:
        The page, for saving or for showing in a notebook.

    Raises:
        PointsetError: cloud and maps do not fit each other, or a map does not have a chosen layer, head or query.

    Example:
        >>> page = pointset.viz.make_page(maps, points, prediction="predicted: flat (93 %)")
        >>> "predicted: flat" in page.html
        True
    """
    cloud, every = as_cloud(points), list(maps) if isinstance(maps, Sequence) else [maps]
    camera = camera_of(camera, up, next((attention.up for attention in every), "z"))
    shown = [attention for attention in every if getattr(attention, "points_are", None) != "neither"]
    layers = [point_rows(attention, cloud) for attention in shown]
    first = _first(layers, layer, of_queries=queries is not None)
    alike = [(rows.row_name, rows.values.shape[1]) for rows in layers]
    chosen = [
        (rows.chosen(0, heads), chosen_rows(rows, cloud, queries if own == alike[first] else None, MOST_CHOSEN))
        for rows, own in zip(layers, alike, strict=True)
    ]
    content = {
        **view_content(camera),
        "title": title,
        "note": prediction,
        "classes": [[name, float(share)] for name, share in classes[:CLASSES_SHOWN]],
        "points": len(cloud),
        "positions": as_base64(np.round(to_unit(cloud, camera.up) * 32767).astype("<i2")),
        "layers": [_layer(rows, *own) for rows, own in zip(layers, chosen, strict=True)],  # see `Layer` in web/maps.mjs
        "first": first,
        "order": "sharpest" if heads is None and queries is None else "model",
    }
    options: dict[str, Any] = {"heads": heads, "queries": queries, "camera": camera, "title": title}
    return Page(
        html=page_of(WEB / "page.html", title, content, panels=_panels(checks or {})),
        draw_still=partial(draw_maps, shown[first], cloud, **options),
    )


def _layer(rows: PointRows, heads: list[int], chosen: list[int]) -> dict[str, Any]:
    """The chosen heads and rows of one layer, for the script of the page; see `Layer` in web/maps.mjs."""
    values = rows.values[np.ix_(heads, chosen)]
    reach = reach_of(values)
    scale = attention_scale(reach)
    only = f" ({rows.row_name} {chosen[0]})" if len(chosen) == 1 else ""
    hollow = f"; {HOLLOW}" if scale.rings(values).any() else ""
    codes, low, high = quantise(values)
    return {
        "name": rows.layer,
        "kind": rows.kind,
        "row_name": rows.row_name,
        "meaning": f"{MEANINGS[rows.kind]}{only}; colour: attention, times its uniform value{hollow}",
        "keys": rows.keys,
        "heads": heads,
        "rows": chosen,
        "marks": [-1 if (mark := rows.mark(row)) is None else mark for row in chosen],
        "entropy": np.round(rows.entropy[np.ix_(heads, chosen)].ravel(), 3).tolist(),
        "differences": [] if len(chosen) < 2 else np.round(rows.difference(chosen), 3).tolist(),
        "reach": float(np.log2(reach)),
        "low": low,
        "high": high,
        "ticks": scale.ticks,
        "values": as_base64(codes),
    }


def quantise(values: NDArray[np.float64]) -> tuple[NDArray[np.uint16], float, float]:
    """Values >= 0 as 16-bit codes of their binary logarithms, with the logarithms at the codes 0 and `WEIGHT_STEPS`.

    Only the value 0 has code 0.
    """
    logs = np.log2(np.maximum(values, 2.0**LEAST_EXPONENT))
    some = logs[values > 0]
    least, high = (float(some.min()), float(some.max())) if some.size else (0.0, 0.0)
    low = least - max(high - least, 1e-6) / (WEIGHT_STEPS - 1)
    codes = np.where(values > 0, np.round((logs - low) / (high - low) * WEIGHT_STEPS), 0)
    return codes.astype("<u2"), low, high


def _first(layers: Sequence[PointRows], layer: str | None, of_queries: bool) -> int:
    """The index of the layer to open with: the named one, else the most informative one (see `make_page`)."""
    names = [rows.layer for rows in layers]
    if not names:
        raise PointsetError("no map has points as queries or keys: give at least one that reads, writes or pools them")
    if layer is not None:
        if layer not in names:
            raise PointsetError(f"no map is of layer {quoted(layer)}: choose among {', '.join(names)}")
        return names.index(layer)
    entropies = [float(np.sort(rows.entropy, axis=None)[:SHARPEST].mean()) for rows in layers]
    readers = [i for i, rows in enumerate(layers) if rows.kind == "reads"]
    pooling = [i for i, rows in enumerate(layers) if rows.kind == "pools" and entropies[i] < UNIFORM]
    if of_queries and readers:
        return readers[-1]
    return pooling[-1] if pooling else int(np.argmin(entropies))


def _panels(checks: Mapping[str, Curves]) -> list[dict[str, Any]]:
    """The panels of deletion and insertion curves: the mean over shapes of each explanation, as points of SVG lines."""
    return [
        {
            "title": title,
            "lines": [
                {
                    "name": name,
                    "color": "#888888" if name == "random" else COLORS[index % len(COLORS)],
                    "note": f"{100 * curves.areas[title].mean():.0f} %",
                    "points": _polyline(getattr(curves, title).mean(axis=0)),
                }
                for index, (name, curves) in enumerate(checks.items())
            ],
        }
        for title in ("deletion", "insertion")
        if checks
    ]


def _polyline(probabilities: NDArray[np.float64]) -> str:
    """The points of a curve in a panel of 240 x 120 units; see page.html."""
    pairs = zip(REMOVED_SHARES, probabilities.tolist(), strict=True)
    return " ".join(f"{share * 240:.1f},{(1 - probability) * 120:.1f}" for share, probability in pairs)
