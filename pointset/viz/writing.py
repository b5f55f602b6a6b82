"""Writing a picture to a file, and the suffixes that a file may have."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.errors import PointsetError
from pointset.runs.atomic import write_for_user

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILL_SUFFIXES = (".png", ".svg")


def save(figure: Figure, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as PNG or SVG (dots inside an SVG are one image of `dpi`, so that it stays small).

    Raises:
        PointsetError: the suffix is another one, or the path cannot be written.
    """
    path = checked_suffix(path, STILL_SUFFIXES, "a still picture")
    return write_for_user(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:].lower(), dpi=dpi))


def as_png(figure: Figure, dpi: int = 200) -> bytes:
    """A figure as the bytes of a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    return stream.getvalue()


def checked_suffix(path: str | Path, suffixes: Sequence[str], what: str) -> Path:
    """The path, or an error that lists the suffixes that it may have."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise PointsetError(f"{path}: the name of {what} must end in {' or '.join(suffixes)}")
    return path
