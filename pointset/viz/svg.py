"""Figures as SVG: text is text, and where dots are images, these have few colours, so that files stay small."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BYTES = 1_000_000
COLORS = 64
"""Of an image: dots, their edges and the paper; more cannot be told apart on a printed page."""
MOST_DOTS = 3.2e6
"""Pixels of a sheet: with dots all over it, they take about MOST_BYTES."""
COARSER = (1.0, 0.7, 0.5, 0.35)
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""The one that layouts are measured with, and one that is as wide."""
IMAGE = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")


def as_svg(figure: Figure, name: str, dpi: float = 160) -> str:
    """A figure as the text of an SVG file: words are text that can be searched, not outlines.

    Args:
        figure: with whatever is rasterized in it as images of `dpi`.
        name: what its identifiers are made from, so that several may stand in one page, and the same figure gives the
            same file.
        dpi: of what is rasterized.
    """
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(stream, format="svg", dpi=dpi, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)  # matplotlib numbers them anew in each figure
    text = re.sub(r"font-family: [^;\"]*", FONTS, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def still_svg(figure: Figure, dpi: int, most: int = MOST_BYTES) -> str:
    """A figure as SVG, below `most` bytes if it can be: its images are coarser than `dpi` where there are very many."""
    width, height = figure.get_size_inches()
    first = min(dpi, (MOST_DOTS / (width * height)) ** 0.5)
    for share in COARSER:
        text = IMAGE.sub(lambda found: _with_few_colors(found[1], figure), as_svg(figure, "still", share * first))
        if len(text) < most:
            break
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _with_few_colors(encoded: str, figure: Figure) -> str:
    """The same image on the figure's paper, with a palette: a quarter as large."""
    from matplotlib.colors import to_hex
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        dots = image.convert("RGBA")
    sheet = Image.new("RGBA", dots.size, to_hex(figure.get_facecolor()))
    stream = io.BytesIO()
    Image.alpha_composite(sheet, dots).convert("RGB").quantize(COLORS).save(stream, format="png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
