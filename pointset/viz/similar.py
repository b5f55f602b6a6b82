"""A page of similar shapes: pictures with captions, in one HTML file without scripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jinja2 import Template

from pointset.viz.camera import Up
from pointset.viz.clouds import draw_tile
from pointset.viz.color import scale_for
from pointset.viz.html_page import Page, page_of
from pointset.viz.writing import as_png

BODY = """<h1>{{ title }}</h1>
<p>{{ note }}</p>
<main class="tiles">
{% for tile, image in pictures %}
<figure><img src="data:image/png;base64,{{ image }}" alt="{{ tile.title }}">
<figcaption>{{ tile.title }}<br><small>{{ tile.note }}</small></figcaption></figure>
{% endfor %}
</main>"""


@dataclass(frozen=True, eq=False)
class Tile:
    """A picture with its caption."""

    clouds: Sequence[Any]
    """One or several clouds [n, 3], side by side."""
    title: str
    note: str = ""
    influence: Any = None
    """[n], for a single cloud: its second picture shows the points with more than average influence."""


def make_similar_page(tiles: Sequence[Tile], *, title: str, note: str = "", up: Up = "z") -> Page:
    """A page of shapes with captions.

    Args:
        tiles: the shapes, in their order.
        title: heading of the page.
        note: a sentence below it.
        up: the upward axis of the clouds.
    """
    pictures = [(tile, base64.b64encode(_picture(tile, up)).decode()) for tile in tiles]
    body = Template(BODY, autoescape=True, trim_blocks=True).render(title=title, note=note, pictures=pictures)
    return Page(html=page_of("plain", title, {}, start="", body=body))


def _picture(tile: Tile, up: Up) -> bytes:
    values = scale = None
    if tile.influence is not None:  # relative to its mean, as attention to uniform; a small number where there is none
        positive = np.maximum(np.asarray(tile.influence, np.float64), 0.0)
        values = np.maximum(positive / max(positive.mean(), 1e-12), 1e-3)
        scale = scale_for(values)
    return as_png(draw_tile(tile.clouds, up, values, scale), dpi=140, colors=64)
