"""A section of a report, to which tasks add their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pointset.comparison.tables import Table
from pointset.viz.writing import as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Section:
    """A heading, a text, and a chart or a table."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Stem of the file name of the chart."""
    table: Table = field(default_factory=list)

    @cached_property
    def svg(self) -> str:
        """The chart as SVG."""
        assert self.chart is not None
        return as_svg(self.chart, self.name)
