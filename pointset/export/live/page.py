"""The live page: one HTML file with trained models that classify a shape again whenever the user changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from pointset.data.sampling import sample_points
from pointset.data.shapes10 import make_shape
from pointset.errors import PointsetError
from pointset.export.live.description import describe_model
from pointset.viz.camera import Camera
from pointset.viz.html_page import Page, as_base64, page_of, view_content
from pointset.viz.rows import clouds_of

WEB = Path(str(files("pointset.export.live"))) / "web"
MOST_POINTS = 2048
MOST_MODELS = 3
EXAMPLES = (
    ("table", "test", 0),
    ("bench", "train", 0),
    ("lamp", "test", 3),
    ("bookshelf", "train", 0),
    ("chair", "train", 3),
)
"""Shapes of shapes10. A page includes those whose class one of its models has. ModelNet40 has all these classes."""


def make_live_page(
    models: nn.Module | Sequence[nn.Module],
    shapes: Mapping[str, Any] | None = None,
    *,
    title: str = "Ask the models",
    camera: Camera | None = None,
) -> Page:
    """Make a page that runs models in the browser, on shapes that the user opens and changes.

    The page needs no internet access and sends no data. It includes example shapes of classes that the models have.

    Args:
        models: 1 to 3 models of points [n, 3]. The page first shows the first two.
        shapes: further shapes by name, with z up: clouds [n, 3], meshes or files. The first 2,048 points are kept.
        title: title of the page.
        camera: the camera of the first view.

    Returns:
        The page; `save` writes it.

    Raises:
        PointsetError: models or shapes have the wrong number or form, or a module has no JavaScript implementation.

    Example:
        >>> page = pointset.export.make_live_page(model, {"mine": test.points[0]})
        >>> "default-src 'none'" in page.html  # no network
        True
    """
    models = [models] if isinstance(models, nn.Module) else list(models)
    if not 1 <= len(models) <= MOST_MODELS:
        raise PointsetError(f"a live page has 1 to {MOST_MODELS} models, got {len(models)}")
    described = [describe_model(model) for model in models]
    for number, model in enumerate(described):
        if model["inputs"] != 3:
            raise PointsetError(
                f"{model['name']} needs {model['inputs']} numbers per point, but a live page has only coordinates: "
                "use a model with 3 inputs"
            )
        if again := sum(other["name"] == model["name"] for other in described[:number]):
            model["label"] = f"{model['name']} ({again + 1})"
    clouds = {name: clouds_of([shape])[0] for name, shape in (shapes or {}).items()}
    classes = {name for model in described for name in model["classes"]}
    examples = [example for example in EXAMPLES if example[0] in classes] or EXAMPLES * (not clouds)
    for example in examples:
        clouds[f"{example[0]} (built in)"] = sample_points(make_shape(*example), MOST_POINTS, seed=0)
    content = {
        **view_content(camera or Camera()),
        "title": title,
        "models": [model | {"name": model.pop("label", model["name"])} for model in described],
        "shapes": [_shape(name, cloud) for name, cloud in clouds.items()],
    }
    return Page(html=page_of(WEB / "live.html", title, content), height=900)


def _shape(name: str, cloud: Any) -> dict[str, Any]:
    """Return the data of a cloud for the page, centred, with 16-bit coordinates."""
    kept = cloud[:MOST_POINTS]
    centred = kept - (kept.min(axis=0) + kept.max(axis=0)) / 2
    size = float(np.abs(centred).max()) or 1.0
    return {"name": name, "points": as_base64(np.round(centred / size * 32767).astype("<i2")), "size": size}
