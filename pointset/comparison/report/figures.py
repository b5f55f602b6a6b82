"""Figures of a report: SVG files beside report.md, and the same inside report.html in the colours of its scheme."""

import base64
import re
from collections.abc import Mapping, Sequence

from pointset.comparison.section import Section
from pointset.viz.charts import COLORS
from pointset.viz.sheet import FAINT, INK
from pointset.viz.svg import as_svg
from pointset.viz.writing import as_png

SCHEME = {
    "#000000": "ink",
    INK: "ink",
    FAINT: "faint",
    "#bbbbbb": "mid",
    "#eeeeee": "line",
    "#ffffff": "paper",
    **{color: f"c{place}" for place, color in enumerate(COLORS) if color != "#000000"},
}
"""Colours that the page chooses for a light and a dark screen, by the name of its variable."""
SHEET = re.compile(r'(<path d="[^"]*") style="fill: #ffffff"/>')
"""What lies under a figure, and under axes."""


def draw(sections: Sequence[Section]) -> dict[str, bytes]:
    """The content of every file in figures/, by name: a chart as SVG, the small pictures of tiles as PNG, a page."""
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
    """The file of a tile, the first of which has place 0."""
    return f"{section.name}-{place + 1}.png"


def inline_chart(section: Section, files: Mapping[str, bytes]) -> str:
    """The chart as a part of an HTML page, whose style sheet sets its size and its colours."""
    svg = files[f"{section.name}.svg"].decode()
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would be in force on the whole page
    svg = SHEET.sub(r'\1 style="fill: none"/>', svg)  # the page's paper, and the shadows at its edges, show through
    svg = re.sub(r'style="[^"]*"', lambda found: _in_scheme(found.group()), svg)
    return re.sub(r' width="[^"]*" height="[^"]*"', ' role="img"', svg, count=1)


def _in_scheme(style: str) -> str:
    """A style with the page's font and colours in place of its own."""
    style = re.sub(r"font-family: [^;\"]*;? ?", "", style)
    return re.sub(r"#[0-9a-f]{6}", lambda found: _variable(found.group()), style)


def _variable(color: str) -> str:
    return f"var(--{SCHEME[color]})" if color in SCHEME else color


def inline_tile(name: str, files: Mapping[str, bytes]) -> str:
    """A picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode(files[name]).decode("ascii")
