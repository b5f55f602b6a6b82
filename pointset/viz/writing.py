"""Writing a picture to a file, and the suffixes that a file may have."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.errors import PointsetError
from pointset.runs.atomic import write_for_user
from pointset.viz.svg import still_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL_SUFFIXES = (".png", ".svg")


def save(figure: Figure, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as PNG or SVG.

    In an SVG, text is text, and dots are images of `dpi`, or coarser ones where it would be larger than 1 MB.

    Raises:
        PointsetError: the suffix is another one, or the path cannot be written.
    """
    path = checked_suffix(path, STILL_SUFFIXES, "a still picture")
    if path.suffix.lower() == ".svg":
        return write_for_user(path, lambda temporary: temporary.write_text(still_svg(figure, dpi), encoding="utf-8"))
    return write_for_user(path, lambda temporary: figure.savefig(temporary, format="png", dpi=dpi))


def as_svg(figure: Figure, name: str, dpi: int = 160) -> str:
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


FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""The one that layouts are measured with, and one that is as wide."""


def as_png(figure: Figure, dpi: int = 200, colors: int | None = None) -> bytes:
    """A figure as the bytes of a PNG file; so many colours make that of a small picture a quarter as large."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    if colors is None:
        return stream.getvalue()
    from PIL import Image

    small = io.BytesIO()
    with Image.open(stream) as picture:
        picture.convert("RGB").quantize(colors).save(small, format="png", optimize=True)
    return small.getvalue()


def checked_suffix(path: str | Path, suffixes: Sequence[str], what: str) -> Path:
    """The path, or an error that lists the suffixes that it may have."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise PointsetError(f"{path}: the name of {what} must end in {' or '.join(suffixes)}")
    return path
