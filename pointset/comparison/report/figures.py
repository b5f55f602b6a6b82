"""Figures of a report: files for report.md, and inline in report.html with its light or dark colours."""

import base64
import re
from collections.abc import Mapping, Sequence

from pointset.comparison.section import Section
from pointset.viz.charts import COLORS
from pointset.viz.sheet import FAINT, INK
from pointset.viz.writing import as_png, as_svg

SCHEME = {
    "#000000": "ink",
    INK: "ink",
    FAINT: "faint",
    "#bbbbbb": "mid",
    "#eeeeee": "line",
    "#ffffff": "paper",
    **{color: f"c{place}" for place, color in enumerate(COLORS) if color != "#000000"},
}
"""CSS variables of the page, which has a light and a dark scheme, by the colour that they replace."""
SHEET = re.compile(r'(<path d="[^"]*") style="fill: #ffffff"/>')
"""The white background of a figure or of its axes."""


def draw(sections: Sequence[Section]) -> dict[str, bytes]:
    """Contents of all files in figures/, by name: charts as SVG, tiles as PNG, and HTML pages."""
    files = {}
    for section in sections:
        if section.chart is not None:
            files[f"{section.name}.svg"] = as_svg(section.chart, section.name).encode()
        for place, tile in enumerate(section.tiles):
            files[tile_name(section, place)] = as_png(tile.picture, dpi=140, colors=64)
        if section.page is not None:
            files[f"{section.name}.html"] = section.page.html.encode()
    return files


def tile_name(section: Section, place: int) -> str:
    """File name of the tile with this index."""
    return f"{section.name}-{place + 1}.png"


def inline_chart(section: Section, files: Mapping[str, bytes]) -> str:
    """A chart as inline SVG, whose size and colours come from the page's style sheet."""
    svg = files[f"{section.name}.svg"].decode()
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would apply to the whole page
    svg = SHEET.sub(r'\1 style="fill: none"/>', svg)  # shows the page's own background
    svg = re.sub(r'style="[^"]*"', lambda found: _in_scheme(found.group()), svg)
    return re.sub(r' width="[^"]*" height="[^"]*"', ' role="img"', svg, count=1)


def _in_scheme(style: str) -> str:
    """A style attribute with the page's font and colours."""
    style = re.sub(r"font-family: [^;\"]*;? ?", "", style)
    return re.sub(r"#[0-9a-f]{6}", lambda found: _variable(found.group()), style)


def _variable(color: str) -> str:
    return f"var(--{SCHEME[color]})" if color in SCHEME else color


def inline_tile(name: str, files: Mapping[str, bytes]) -> str:
    """A picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode(files[name]).decode("ascii")
