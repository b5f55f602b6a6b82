"""Writes pictures to files: PNG, and SVG and PDF with text as text."""

from __future__ import annotations

import base64
import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.runs.atomic import checked_suffix, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL_SUFFIXES = (".png", ".svg", ".pdf")
IMAGE_COLORS = 64
"""Colours of an image (dots, their edges and the background); more cannot be distinguished in print."""
MOST_DOTS = 3.2e6
"""Maximum number of pixels of an image: if dots cover all of it, they take about 1 MB."""
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""The font with which layouts are measured, and one of the same width."""
IMAGE = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")


def save(figure: Figure, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as PNG, SVG or PDF.

    In an SVG, text remains text; dots are images with `dpi` dots per inch, or fewer so that a file has about 1 MB. In a
    PDF, text is text and dots are images of `dpi` too.

    Args:
        figure: the result of any `draw_...` function.
        path: path that ends in .png, .svg or .pdf; an existing file is replaced.
        dpi: dots per inch.

    Raises:
        PointsetError: the path has another suffix, or cannot be written.
    """
    path = checked_suffix(path, STILL_SUFFIXES, "a still picture")
    if path.suffix.lower() == ".png":
        return write_atomically(path, lambda temporary: temporary.write_bytes(as_png(figure, dpi)))
    if path.suffix.lower() == ".pdf":
        return write_atomically(path, lambda temporary: temporary.write_bytes(_as_pdf(figure, dpi)))
    width, height = figure.get_size_inches()
    svg = as_svg(figure, "still", min(dpi, (MOST_DOTS / (width * height)) ** 0.5))
    text = f'<?xml version="1.0" encoding="utf-8"?>\n{IMAGE.sub(_with_few_colors, svg)}'
    return write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def as_svg(figure: Figure, name: str, dpi: float = 160) -> str:
    """A figure as the content of an SVG file whose text is searchable text, not outlines.

    The name is the seed of its identifiers: several figures can be in one page, and equal figures give equal files.
    """
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # text, for fonts of the reader
        figure.savefig(stream, format="svg", dpi=dpi, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)  # matplotlib uses the same numbers in each figure
    text = re.sub(r"font-family: [^;\"]*", FONTS, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _as_pdf(figure: Figure, dpi: float) -> bytes:
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}):  # fonts that publishers take
        figure.savefig(stream, format="pdf", dpi=dpi, metadata={"CreationDate": None})
    return stream.getvalue()


def as_png(figure: Figure, dpi: float = 200, colors: int | None = None) -> bytes:
    """A figure as the content of a PNG file; a palette of `colors` colours makes a small picture a quarter as large."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    return stream.getvalue() if colors is None else _with_palette(stream, colors)


def _with_few_colors(found: re.Match[str]) -> str:
    """An image of dots on white, with a palette, which takes a quarter of the bytes."""
    content = _with_palette(io.BytesIO(base64.b64decode(found[1])), IMAGE_COLORS)
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _with_palette(stream: io.BytesIO, colors: int) -> bytes:
    from PIL import Image

    with Image.open(stream) as image:
        sheet = Image.new("RGBA", image.size, "white")
        picture = Image.alpha_composite(sheet, image.convert("RGBA")).convert("RGB")
    content = io.BytesIO()
    picture.quantize(colors).save(content, format="png", optimize=True)
    return content.getvalue()
