"""Writes pictures to files, and checks the suffixes of paths."""

from __future__ import annotations

import io
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

    In an SVG, text remains text; dots are images with `dpi` dots per inch, or fewer if the file would exceed 1 MB.

    Args:
        figure: the result of any `draw_...` function.
        path: path that ends in .png or .svg; an existing file is replaced.
        dpi: dots per inch.

    Returns:
        The path.

    Raises:
        PointsetError: the path has another suffix, or cannot be written.

    Example:
        >>> pointset.viz.save(pointset.viz.draw_clouds(test.points[:1]), "cloud.svg").name
        'cloud.svg'
    """
    path = checked_suffix(path, STILL_SUFFIXES, "a still picture")
    if path.suffix.lower() == ".svg":
        return write_for_user(path, lambda temporary: temporary.write_text(still_svg(figure, dpi), encoding="utf-8"))
    return write_for_user(path, lambda temporary: figure.savefig(temporary, format="png", dpi=dpi))


def as_png(figure: Figure, dpi: int = 200, colors: int | None = None) -> bytes:
    """A figure as the bytes of a PNG file; a palette of `colors` colours makes a small picture a quarter as large."""
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
    """The path; raises a PointsetError if it has none of the suffixes."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise PointsetError(f"{path}: the name of {what} must end in {' or '.join(suffixes)}")
    return path
