"""A section of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pointset.viz.page import HtmlPage

Table = list[dict[str, Any]]
"""Rows; the keys of the first are the table's head."""


@dataclass
class Tile:
    """A small picture among others of its kind, and the words under it."""

    picture: Figure
    title: str
    text: str = ""


@dataclass
class Section:
    """A heading, a few sentences, and a chart, tiles, a table or a link to a page under them."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Of the file of the chart or of the page, or of those of the tiles."""
    table: Table = field(default_factory=list)
    tiles: Sequence[Tile] = ()
    page: HtmlPage | None = None
    """That the section links to."""
