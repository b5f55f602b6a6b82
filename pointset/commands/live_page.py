"""The live page of `pointset attend --live`: which models it has, and on what shape it opens."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pointset.commands.models import Trained, load_model
from pointset.zoo.pretrained import USUAL, list_pretrained

if TYPE_CHECKING:
    from pointset.data.loading import Shape
    from pointset.viz import Camera

BESIDE = ("rff-max.modelnet40-1024", USUAL, "dumlp16-max+dumlp16.modelnet40-1024")
"""Trained models that come with a page, as many as it takes, after the one that was asked for."""


def write_live_page(trained: Trained, name: str, shape: "Shape", camera: "Camera", output: Path) -> None:
    """Write a page with a model, and with those beside it that know the same classes.

    Raises:
        PointsetError: a part of the model cannot be computed in a page.
    """
    from pointset.export.javascript import describe_plainly
    from pointset.viz import make_live_page
    from pointset.viz.camera import to_unit
    from pointset.viz.live import MOST_MODELS

    models = [trained]
    for other in (load_model(one) for one in BESIDE if one in list_pretrained() and one != trained.name):
        if other.description["data"]["classes"] == trained.description["data"]["classes"]:
            models.append(other)
    plain = [
        describe_plainly(one.network, one.description, temperature=one.network.temperature)
        for one in models[:MOST_MODELS]
    ]
    cloud = to_unit(np.asarray(shape.raw, dtype=np.float64), camera.up)
    make_live_page(plain, {name: cloud}, title=f"Ask the models: {name}", camera=camera).save(output)
