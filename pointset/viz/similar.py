"""A page of similar shapes: pictures with captions, in one HTML file without scripts."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.viz.camera import Up
from pointset.viz.clouds import draw_looked_at, draw_tile
from pointset.viz.color import scale_for
from pointset.viz.html_page import HtmlPage
from pointset.viz.rows import as_cloud
from pointset.viz.writing import as_png

STYLE = """
:root { color-scheme: light }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.3rem } p { color: #555 }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem }
figure { margin: 0; border: 1px solid #ddd; border-radius: 6px; padding: .6rem }
img { width: 100%; max-height: 9rem; object-fit: contain } figcaption { overflow-wrap: anywhere } small { color: #666 }
"""


@dataclass(frozen=True, eq=False)
class Tile:
    """A picture with its caption."""

    clouds: Sequence[Any]
    """One or several clouds [n, 3], side by side."""
    title: str
    note: str = ""
    influence: Any = None
    """[n], for a single cloud: its second picture shows the points with more than average influence."""


def make_similar_page(tiles: Sequence[Tile], *, title: str, note: str = "", up: Up = "z") -> HtmlPage:
    """A page of shapes with captions.

    Args:
        tiles: the shapes, in their order.
        title: heading of the page.
        note: a sentence below it.
        up: the upward axis of the clouds.
    """
    figures = "\n".join(_figure(tile, up) for tile in tiles)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return HtmlPage(
        html=f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n<h1>{html.escape(title)}</h1>\n"
        f"<p>{html.escape(note)}</p>\n<main>\n{figures}\n</main>\n</html>\n"
    )


def _figure(tile: Tile, up: Up) -> str:
    clouds = [as_cloud(cloud) for cloud in tile.clouds]
    if tile.influence is None:
        picture = draw_tile(clouds, up)
    else:
        values = _relative(np.asarray(tile.influence, np.float64))
        picture = draw_looked_at(clouds[0], values, scale_for(values), up)
    image = base64.b64encode(as_png(picture, dpi=140, colors=64)).decode()
    caption = f"{html.escape(tile.title)}<br><small>{html.escape(tile.note)}</small>"
    return (
        f'<figure><img src="data:image/png;base64,{image}" alt="{html.escape(tile.title)}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _relative(influence: NDArray[np.float64]) -> NDArray[np.float64]:
    """Influence relative to its mean, as attention to uniform; a small number where there is none."""
    positive = np.maximum(influence, 0.0)
    return np.maximum(positive / max(positive.mean(), 1e-12), 1e-3)
