"""Figures as SVG with text as text; rasterized dots get a palette of few colours, so that files stay small."""

from __future__ import annotations

import base64
import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BYTES = 1_000_000
COLORS = 64
"""Colours of an image (dots, their edges and the background); more cannot be distinguished in print."""
MOST_DOTS = 3.2e6
"""Maximum number of pixels of an image: if dots cover all of it, they take about MOST_BYTES."""
COARSER = (1.0, 0.7, 0.5, 0.35)
"""Factors of the resolution that are tried until the file is small enough."""
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""The font with which layouts are measured, and one of the same width."""
IMAGE = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")


def as_svg(figure: Figure, name: str, dpi: float = 160) -> str:
    """A figure as the content of an SVG file whose text is searchable text, not outlines.

    Args:
        figure: the figure.
        name: seed of its identifiers, so that several figures can be in one page, and equal figures give equal files.
        dpi: resolution of rasterized elements.
    """
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(stream, format="svg", dpi=dpi, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)  # matplotlib uses the same numbers in each figure
    text = re.sub(r"font-family: [^;\"]*", FONTS, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def still_svg(figure: Figure, dpi: int, most: int = MOST_BYTES) -> str:
    """A figure as SVG of fewer than `most` characters if possible, with a resolution of at most `dpi`."""
    width, height = figure.get_size_inches()
    first = min(dpi, (MOST_DOTS / (width * height)) ** 0.5)
    for share in COARSER:
        text = IMAGE.sub(lambda found: _with_few_colors(found[1], figure), as_svg(figure, "still", share * first))
        if len(text) < most:
            break
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}'


def _with_few_colors(encoded: str, figure: Figure) -> str:
    """The image on the background of the figure, with a palette of few colours, which takes a quarter of the bytes."""
    from matplotlib.colors import to_hex
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        dots = image.convert("RGBA")
    sheet = Image.new("RGBA", dots.size, to_hex(figure.get_facecolor()))
    stream = io.BytesIO()
    Image.alpha_composite(sheet, dots).convert("RGB").quantize(COLORS).save(stream, format="png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
