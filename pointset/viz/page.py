"""An interactive page of attention maps: all maps of a layer rotate together, with several models side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pointset.arguments import suggests
from pointset.errors import PointsetError, quoted
from pointset.explain.maps import AttentionMap
from pointset.viz.camera import Camera, Up, camera_of, to_unit
from pointset.viz.color import HOLLOW, attention_scale, reach_of
from pointset.viz.html_page import WEB, Page, as_base64, page_of, view_content
from pointset.viz.maps import draw_maps, draw_sharpest
from pointset.viz.rows import MEANINGS, PointRows, chosen_rows, cloud_of, first_shown, point_rows

MOST_CHOSEN = 16
CLASSES_SHOWN = 5
WEIGHT_STEPS = 2**16 - 1
LEAST_EXPONENT = -20
"""Weights below 2^-20 of uniform attention are shown as 2^-20, except exact zeros."""


@dataclass(frozen=True, eq=False)
class Shown:
    """The maps of one attention of one model on a page."""

    model: int
    rows: PointRows
    heads: list[int]
    chosen: list[int]

    @property
    def values(self) -> NDArray[np.float64]:
        """The values [maps, n] of the chosen rows, ordered by head."""
        return self.rows.values[np.ix_(self.heads, self.chosen)].reshape(-1, self.rows.values.shape[2])

    @property
    def entropy(self) -> NDArray[np.float64]:
        """The entropy [maps] of the chosen rows, ordered by head."""
        return self.rows.entropy[np.ix_(self.heads, self.chosen)].ravel()


@suggests
def make_page(
    maps: AttentionMap | Sequence[AttentionMap] | Mapping[str, Sequence[AttentionMap]],
    points: Any = None,
    *,
    title: str = "Attention",
    prediction: str = "",
    classes: Sequence[tuple[str, float]] = (),
    layer: str | None = None,
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
) -> Page:
    """Make an interactive page of all attention maps on one cloud [n, 3].

    Several models can be compared on the same points. Each model has a block of columns. Each tab shows corresponding
    layers of the models, such as the second layer of kind "reads". All maps rotate together.

    Args:
        maps: maps of one cloud, or a mapping from the names of models to their maps. Maps of attention among pooled
            vectors are omitted.
        points: [n, 3], the cloud for which the maps were computed. None means the attribute `points` of the maps.
        title: title of the page.
        prediction: a line under the title, such as "predicted: chair (93 %)".
        classes: names and probabilities, most probable first. The first 5 are shown as bars.
        layer: the layer that is shown first. None means the last layer of kind "reads", or else of kind "pools".
        heads: indices of the heads. None means all.
        queries: indices of inducing points, seeds or points. They apply to the layer shown first, and to layers of the
            same kind with the same number of queries. None means all, or 16 points far apart if the queries are points.
        up: the upward axis of the points. None means the axis of the camera, or of the model's preparation.
        camera: the camera of the first view.

    Returns:
        The page. `page.save(path)` writes it, and a notebook shows it.

    Raises:
        PointsetError: the maps are not of this cloud, or a chosen layer, head or query does not exist.

    Example:
        >>> page = pointset.viz.make_page(maps, points, prediction="predicted: flat (93 %)")
        >>> "predicted: flat" in page.html
        True
        >>> control = pointset.attention_maps(pointset.explain.untrained(model), test.points[0])
        >>> page = pointset.viz.make_page({"trained": maps, "untrained": control}, test.points[0])
    """
    every = maps if isinstance(maps, Mapping) else {"": maps if isinstance(maps, Sequence) else [maps]}
    models = {name: [one for one in own if getattr(one, "points_are", "") != "neither"] for name, own in every.items()}
    names, one_map = list(models), next((one for own in every.values() for one in own), None)
    cloud = cloud_of(points, one_map)
    camera = camera_of(camera, up, getattr(one_map, "up", "z"))
    groups = _paired([[point_rows(attention, cloud) for attention in own] for own in models.values()])
    first = _first(groups, layer)
    opened = {(rows.row_name, rows.values.shape[1]) for _, rows in groups[first]}

    def chosen(rows: PointRows) -> list[int]:
        same = (rows.row_name, rows.values.shape[1]) in opened
        return chosen_rows(rows, cloud, queries if same else None, MOST_CHOSEN)

    layers = [[Shown(model, rows, rows.chosen(0, heads), chosen(rows)) for model, rows in group] for group in groups]
    content = {
        **view_content(camera),
        "title": title,
        "note": prediction,
        "classes": [[name, float(share)] for name, share in classes[:CLASSES_SHOWN]],
        "points": len(cloud),
        "models": names,
        "positions": as_base64(np.round(to_unit(cloud, camera.up) * 32767).astype("<i2")),
        "layers": [_layer(parts) for parts in layers],  # see `Layer` in web/maps.mjs
        "first": first,
        "order": "sharpest" if heads is None and queries is None else "model",
    }
    options: dict[str, Any] = {"camera": camera, "title": title}
    if len(names) > 1:
        draw_still: Callable[[], Figure] = partial(
            draw_sharpest, {names[i]: rows for i, rows in groups[first]}, cloud, **options
        )
    else:
        draw_still = partial(draw_maps, models[names[0]][first], cloud, heads=heads, queries=queries, **options)
    return Page(html=page_of(WEB / "page.html", title, content), draw_still=draw_still)


def _paired(models: Sequence[Sequence[PointRows]]) -> list[list[tuple[int, PointRows]]]:
    """Return (index of the model, attention) pairs for each tab, which has each model's i-th attention of one kind."""
    groups: dict[tuple[str, int], list[tuple[int, PointRows]]] = {}
    for model, layers in enumerate(models):
        counts = Counter[str]()
        for rows in layers:
            groups.setdefault((rows.kind, counts[rows.kind]), []).append((model, rows))
            counts[rows.kind] += 1
    return list(groups.values())


def _layer(parts: Sequence[Shown]) -> dict[str, Any]:
    """Return the chosen heads and rows of one tab, for the script of the page (see `Layer` in web/maps.mjs)."""
    rows, values = parts[0].rows, np.concatenate([part.values for part in parts])
    reach, most = reach_of(values), max(len(part.chosen) for part in parts)
    scale = attention_scale(reach)
    only = f" ({rows.row_name} {parts[0].chosen[0]})" if most == 1 else ""
    hollow = f"; {HOLLOW}" if scale.rings(values).any() else ""
    codes, low, high = quantise(values)
    return {
        "name": " / ".join(dict.fromkeys(part.rows.layer for part in parts)),
        "kind": rows.kind,
        "row_name": rows.row_name,
        "meaning": f"{MEANINGS[rows.kind]}{only}; colour: attention weight relative to uniform attention{hollow}",
        "keys": {part.model: part.rows.keys for part in parts},
        "maps": [[part.model, head, row] for part in parts for head in part.heads for row in part.chosen],
        "rows": most,
        "marks": rows.kind == "self",
        "entropy": np.round(np.concatenate([part.entropy for part in parts]), 3).tolist(),
        "reach": float(np.log2(reach)),
        "low": low,
        "high": high,
        "ticks": scale.ticks,
        "values": as_base64(codes),
    }


def quantise(values: NDArray[np.float64]) -> tuple[NDArray[np.uint16], float, float]:
    """Return 16-bit codes of the binary logarithms of values >= 0, and the logarithms at codes 0 and `WEIGHT_STEPS`.

    Only the value 0 has code 0.
    """
    logs = np.log2(np.maximum(values, 2.0**LEAST_EXPONENT))
    some = logs[values > 0]
    least, high = (float(some.min()), float(some.max())) if some.size else (0.0, 0.0)
    low = least - max(high - least, 1e-6) / (WEIGHT_STEPS - 1)
    codes = np.where(values > 0, np.round((logs - low) / (high - low) * WEIGHT_STEPS), 0)
    return codes.astype("<u2"), low, high


def _first(groups: Sequence[Sequence[tuple[int, PointRows]]], layer: str | None) -> int:
    """Return the index of the tab that is shown first. `make_page` describes `layer`."""
    if not groups:
        raise PointsetError("no map has points as queries or keys: give at least one that reads, writes or pools them")
    if layer is not None:
        names = [rows.layer for group in groups for _, rows in group]
        if layer not in names:
            raise PointsetError(f"no map is of layer {quoted(layer)}: choose among {', '.join(dict.fromkeys(names))}")
        return next(i for i, group in enumerate(groups) if layer in [rows.layer for _, rows in group])
    most = max(map(len, groups))
    shared = [i for i, group in enumerate(groups) if len(group) == most]  # the tabs with maps of the most models
    return shared[first_shown([groups[i][0][1].kind for i in shared])]
