"""Pages in one HTML file: a template, a style sheet, JavaScript modules and data, without network or bundler."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pointset.runs.atomic import checked_suffix, write_atomically
from pointset.viz.camera import Camera
from pointset.viz.charts import DPI
from pointset.viz.color import attention_ramp
from pointset.viz.writing import as_png

WEB = Path(str(files("pointset.viz"))) / "web"
IMPORT = re.compile(r'^import .* from "(\.[./\w]*\.mjs)";\n', re.MULTILINE)


@dataclass(frozen=True, eq=False, kw_only=True)
class Page:
    """A page in one HTML file.

    As the last line of a notebook cell, it is shown in a sandboxed frame. A page of maps also has a still picture, for
    viewers of notebooks that remove frames.
    """

    html: str
    """The whole page; it needs no network."""
    height: int = 720
    """Height of the frame in a notebook, in pixels; the page scrolls inside it."""
    draw_still: Callable[[], Figure] | None = None
    """Draws the layer that the page opens with as a still picture."""

    def __repr__(self) -> str:
        """A summary in one line."""
        return f"Page of {len(self.html) / 1e6:.1f} MB: `save` writes it, a notebook shows it"

    def save(self, path: str | Path) -> Path:
        """Write the page to a .html file.

        Raises:
            PointsetError: the path has another suffix, or cannot be written.
        """
        path = checked_suffix(path, (".html", ".htm"), "a page")
        return write_atomically(path, lambda temporary: temporary.write_text(self.html, encoding="utf-8"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The page for notebooks: in a sandboxed frame, and as a still picture if it has one."""
        size = f"width: 100%; height: {self.height}px; border: 1px solid #ddd; border-radius: 6px"
        page = html.escape(self.html)
        frame = f'<iframe title="interactive page" srcdoc="{page}" sandbox="allow-scripts" style="{size}"></iframe>'
        if self.draw_still is None:
            return {"text/html": frame, "text/plain": repr(self)}
        png = base64.b64encode(as_png(self.draw_still(), DPI)).decode()
        # A viewer that removes the frame removes the style, too: then the picture is visible.
        hidden = f'<img alt="the same maps as a still picture" style="display: none" src="data:image/png;base64,{png}">'
        return {"text/html": frame + hidden, "image/png": png, "text/plain": repr(self)}


def page_of(template: Path, title: str, content: dict[str, Any]) -> str:
    """The HTML of a page from its template, and the script and style sheet beside it if there are any.

    A template extends page.html. The script reads `content` as JSON from the element
    `data`. The content security policy allows only this script and this style, by their digests, and no network.
    """
    start = template.with_suffix(".mjs")
    script = script_of(start) if start.exists() else ""
    sheets = dict.fromkeys((WEB / "page.css", template.with_suffix(".css")))
    style = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets if sheet.exists())
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # "<" could end the script element, even inside a JSON string.
    data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    environment = Environment(
        loader=FileSystemLoader([template.parent, WEB]), trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    values = {"title": title, "style": style, "script": script, "data": data, "policy": policy}
    return environment.get_template(template.name).render(values)


def script_of(start: Path) -> str:
    """A module and all that it imports as one script, in which names at the top of modules are unique."""
    bodies: dict[Path, str] = {}

    def collect(path: Path) -> None:
        source = path.read_text(encoding="utf-8")
        for other in IMPORT.findall(source):
            if (imported := (path.parent / other).resolve()) not in bodies:
                collect(imported)
        bodies[path] = re.sub(r"^export ", "", IMPORT.sub("", source), flags=re.MULTILINE)

    collect(start.resolve())
    return "\n".join(bodies.values())


def view_content(camera: Camera) -> dict[str, Any]:
    """The camera and the palettes for light and dark screens, for the script of a page."""
    ramps = {"light": attention_ramp(), "dark": attention_ramp(dark=True)}
    palettes = {screen: as_base64(np.round(ramp * 255).astype(np.uint8)) for screen, ramp in ramps.items()}
    view = {"azimuth": camera.azimuth, "elevation": camera.elevation, "distance": camera.distance}
    return {"camera": view, "palettes": palettes}


def as_base64(array: NDArray[Any]) -> str:
    """The bytes of an array as text."""
    return base64.b64encode(array.tobytes()).decode()


def _digest(text: str) -> str:
    """The digest of a script or a style in the form of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
