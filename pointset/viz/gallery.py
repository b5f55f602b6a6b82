"""A page with the attention of one inducing point or seed on many shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pointset.data.arrays import from_arrays
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.explain.inspection import network_of
from pointset.explain.maps import AttentionMap
from pointset.explain.recording import record_maps
from pointset.explain.specialisation import specialisation
from pointset.viz.camera import Camera, Up, camera_of, to_unit
from pointset.viz.color import HOLLOW, attention_scale, reach_of
from pointset.viz.html_page import WEB, Page, as_base64, page_of, view_content
from pointset.viz.page import LEAST_EXPONENT
from pointset.viz.rows import MEANINGS, ROW_NAMES, first_shown
from pointset.zoo.predicting import list_clouds, predict

MOST_SHAPES, MOST_CODES = 48, 8_000_000
"""Maximum numbers of shapes and of weights (one byte each) in a file. To have fewer weights, points are left out."""
SCORES = {
    "specificity": "consistency, minus the similarity to the regions of other inducing points",
    "consistency": "similarity of its regions on two shapes of a class, 1: the same region",
    "entropy": "1: uniform over the points, 0: one point only",
}
"""The measures of `pointset.explain.specialisation` by which the page can sort inducing points, and their meanings."""


def gallery(
    model: nn.Module,
    shapes: Any,
    *,
    most: int = MOST_SHAPES,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str = "Attention across shapes",
) -> Page:
    """Make a page that shows the attention of one inducing point or seed on many shapes, grouped by class.

    The user selects the layer, head and inducing point for all shapes, and all shapes rotate together. The inducing
    points are sorted by specificity (see `pointset.explain.specialisation`). Below each shape is the predicted class
    with its probability. Wrong predictions are marked.

    Args:
        model: a model with inducing points, or with pooling by attention.
        shapes: `PointSets`, of which the same number from each class is shown, or any other input of `model.predict`:
            files, meshes, arrays or a list of these.
        most: maximum number of shapes.
        up: the upward axis of the points. None means the axis of the model's preparation.
        camera: the camera of the first view.
        title: title of the page.

    Returns:
        The page. `page.save(path)` writes it, and a notebook shows it.

    Raises:
        PointsetError: the model has no map of kind "reads" or "pools", or there are no shapes.

    Example:
        >>> page = pointset.viz.gallery(model, test, most=4)
        >>> page.save("gallery.html").name
        'gallery.html'
    """
    network: Any = network_of(model) if hasattr(model, "preparation") else model  # type: ignore[arg-type]
    sets = shapes if isinstance(shapes, PointSets) else _as_sets(network, shapes, most)
    rows = choose_evenly(sets.labels.numpy(), most)
    if not len(rows):
        raise PointsetError(f"{sets.name} has no shapes: give at least one")
    clouds = [sets[int(row)][0] for row in rows]
    maps = [_shown(record_maps(network, cloud[:, : getattr(network, "inputs", 3)])) for cloud in clouds]
    if not maps[0]:
        raise PointsetError("the model has neither inducing points nor seeds: use a model such as isab16-pma")
    codes = sum(attention.weights[..., 0].numel() for attention in maps[0])
    kept = max(1, MOST_CODES // (codes * len(rows)))
    camera = camera_of(camera, up, maps[0][0].up)
    chosen = sets.subset(rows.tolist())
    probabilities = predict(model, chosen).probabilities
    places = [to_unit(cloud[:, :3].double().numpy(), camera.up)[:kept] for cloud in clouds]
    classes = list(getattr(model, "classes", None) or sets.classes)
    content = {
        **view_content(camera),
        "title": title,
        "counts": [len(place) for place in places],
        "positions": as_base64(np.round(np.concatenate(places) * 32767).astype("<i2")),
        "shapes": [
            {"name": name} | _caption(sets.classes[int(label)], shares, classes)
            for name, label, shares in zip(chosen.names, chosen.labels, probabilities, strict=True)
        ],
        "layers": [
            _layer([shape[layer] for shape in maps], kept, _scores(network, sets, maps[0][layer]))
            for layer in range(len(maps[0]))
        ],
        "first": first_shown([attention.kind for attention in maps[0]]),
        "scores": SCORES,
    }
    return Page(html=page_of(WEB / "gallery.html", title, content), height=800)


def _as_sets(model: Any, shapes: Any, most: int) -> PointSets:
    """Return the first `most` shapes, prepared by the model, as sets of one class."""
    listed = list_clouds(shapes, None, model.inputs)[:most]
    clouds = [model.prepare(shape).points[:, : model.inputs] for shape in listed]
    return from_arrays(clouds, [0] * len(clouds), classes=["shapes"], normalize="none", up=model.preparation.up)


def choose_evenly(labels: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the indices of at most `most` shapes, sorted by class. If possible, all classes have the same number."""
    order = np.argsort(labels, kind="stable")
    place = np.concatenate([np.arange(count) for count in np.unique(labels, return_counts=True)[1]] or [order])
    return order[np.sort(np.argsort(place, kind="stable")[:most])]


def _shown(maps: list[AttentionMap]) -> list[AttentionMap]:
    return [attention for attention in maps if attention.kind in ("reads", "pools") and attention.points_are == "keys"]


def _caption(label: str, probabilities: NDArray[np.float64], classes: list[str]) -> dict[str, Any]:
    """Return the class and prediction of a shape. A prediction can be wrong only if the model has the class `label`."""
    best = int(probabilities.argmax())
    predicted = classes[best] if len(classes) == len(probabilities) else f"class {best}"
    wrong = label in classes and predicted != label
    return {"label": label, "predicted": predicted, "probability": float(probabilities[best]), "wrong": wrong}


def _scores(model: nn.Module, sets: PointSets, attention: AttentionMap) -> dict[str, list[float]]:
    """Return the measures of a layer by name, for each head and row. If no class has two shapes, only the entropy."""
    try:
        measures = specialisation(model, sets, attention.layer, per_class=4).measures
    except PointsetError:
        measures = {"entropy": attention.entropy()}
    finite = {name: measures[name] for name in SCORES if name in measures and bool(measures[name].isfinite().all())}
    return {name: [round(value, 3) for value in values.flatten().tolist()] for name, values in finite.items()}


def _layer(maps: list[AttentionMap], kept: int, scores: dict[str, list[float]]) -> dict[str, Any]:
    """Return one layer on all shapes, with one byte per head, row and point. The byte 0 is a weight of exactly 0."""
    values = torch.cat([attention.relative()[..., :kept] for attention in maps], dim=2).double().numpy()
    reach = reach_of(values)
    limit = np.log2(reach)
    logs = np.clip(np.log2(np.maximum(values, 2.0**LEAST_EXPONENT)), -limit, limit)
    codes = np.where(values > 0, np.round(1 + 254 * (logs + limit) / (2 * limit)), 0).astype(np.uint8)
    heads, queries, _ = values.shape
    kind = maps[0].kind
    rings = f"; {HOLLOW}" if (values == 0).any() else ""
    return {
        "name": maps[0].layer,
        "meaning": f"{MEANINGS[kind]}; colour: attention relative to uniform attention{rings}",
        "row_name": ROW_NAMES[kind],
        "heads": heads,
        "rows": queries,
        "reach": float(limit),
        "ticks": attention_scale(reach).ticks,
        "scores": scores,
        "codes": [as_base64(row) for row in codes.reshape(heads * queries, -1)],  # decoded when it is shown
    }
