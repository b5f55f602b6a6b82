"""A section of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pointset.viz.html_page import HtmlPage

Table = list[dict[str, Any]]
"""Rows of a table; the keys of the first are its header."""


@dataclass
class Tile:
    """A small picture in a grid, with a title and a text below it."""

    picture: Figure
    title: str
    text: str = ""


@dataclass
class Section:
    """A heading, a text, and a chart, tiles, a table or a link to a page."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Stem of the file names of chart, page and tiles."""
    table: Table = field(default_factory=list)
    tiles: Sequence[Tile] = ()
    page: HtmlPage | None = None
    """Page to which the section links."""
