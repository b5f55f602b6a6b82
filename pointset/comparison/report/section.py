"""A section of a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = list[dict[str, Any]]
"""Rows; the keys of the first are the table's head."""


@dataclass
class Section:
    """A heading, a few sentences, and a chart or a table under them."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Of the chart's file."""
    table: Table = field(default_factory=list)
