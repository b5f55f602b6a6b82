"""A section of a report, to which tasks add their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pointset.comparison.tables import Table
from pointset.viz.writing import as_png, as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Thumbnail:
    """A small picture in a grid, with a title and a text below it."""

    picture: Figure
    title: str
    text: str = ""


@dataclass
class Section:
    """A heading, a text, and a chart, tiles or a table."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Stem of the file names of chart and tiles."""
    table: Table = field(default_factory=list)
    tiles: Sequence[Thumbnail] = ()

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Contents of its files in figures/, by name: the chart as SVG, and tiles as PNG."""
        files = {} if self.chart is None else {f"{self.name}.svg": as_svg(self.chart, self.name).encode()}
        return files | {name: as_png(tile.picture, dpi=140, colors=64) for name, tile in self.named_tiles}

    @property
    def named_tiles(self) -> list[tuple[str, Thumbnail]]:
        """The tiles with the names of their files."""
        return [(f"{self.name}-{number}.png", tile) for number, tile in enumerate(self.tiles, start=1)]
