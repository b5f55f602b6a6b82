"""Writing of figures to PNG, SVG and PDF files."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.runs.atomic import checked_suffix, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL_SUFFIXES = (".png", ".svg", ".pdf")
MOST_DOTS = 3.2e6
"""Maximum number of pixels of a figure in an SVG file. It limits the resolution of images in the figure."""
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""The font for which matplotlib computes layouts, and a replacement of similar width."""


def save(figure: Figure, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as PNG, SVG or PDF. In SVG and PDF files, text can be searched, and points are raster images.

    Args:
        figure: the result of any `draw_...` function.
        path: a path that ends in .png, .svg or .pdf. An existing file is replaced.
        dpi: pixels per inch. A large SVG has fewer.

    Raises:
        PointsetError: the path has an unsupported suffix or cannot be written.
    """
    path = checked_suffix(path, STILL_SUFFIXES, "a still picture")
    suffix = path.suffix[1:].lower()
    if suffix != "svg":
        options = {"metadata": {"CreationDate": None}} if suffix == "pdf" else {"pil_kwargs": {"optimize": True}}
        return write_atomically(path, lambda temporary: figure.savefig(temporary, format=suffix, dpi=dpi, **options))
    width, height = figure.get_size_inches()
    svg = as_svg(figure, "still", min(dpi, (MOST_DOTS / (width * height)) ** 0.5))
    text = f'<?xml version="1.0" encoding="utf-8"?>\n{svg}'
    return write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def as_svg(figure: Figure, name: str, dpi: float = 160) -> str:
    """Return a figure as the content of an SVG file in which text is stored as searchable text instead of outlines.

    Identifiers in the SVG depend on the name, so that a page can contain several figures with different names.
    """
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # the viewer's fonts may have it
        figure.savefig(stream, format="svg", dpi=dpi, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg ") :], flags=re.DOTALL)
    text = re.sub(r'(<g) id="[^"]*"', r"\1", text)  # matplotlib uses the same numbers in each figure
    text = re.sub(r"font-family: [^;\"]*", FONTS, text)
    return re.sub(r"\s*\n\s*", "\n", text)


def as_png(figure: Figure, dpi: float) -> bytes:
    """Return a figure as PNG for a notebook. A palette of 256 colours saves two thirds of the bytes."""
    from PIL import Image

    stream, content = io.BytesIO(), io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    with Image.open(stream) as image:
        image.convert("RGB").quantize(256).save(content, format="png", optimize=True)
    return content.getvalue()
