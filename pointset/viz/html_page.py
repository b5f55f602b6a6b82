"""Pages in one HTML file that needs no internet access: a template, style sheets, JavaScript modules and data."""

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

    A notebook shows the page in a sandboxed frame if it is the last expression of a cell. A page of maps also has a
    still picture, for notebook viewers that remove frames.
    """

    html: str
    """The whole page, which needs no internet access."""
    height: int = 720
    """Height of the frame in a notebook, in pixels. The page scrolls inside the frame."""
    draw_still: Callable[[], Figure] | None = None
    """A function that draws a still picture of the layer that the page shows first."""

    def __repr__(self) -> str:
        """Return a summary in one line."""
        return f"Page of {len(self.html) / 1e6:.1f} MB: `save` writes it, a notebook shows it"

    def save(self, path: str | Path) -> Path:
        """Write the page to a .html file.

        Raises:
            PointsetError: the path has an unsupported suffix or cannot be written.
        """
        path = checked_suffix(path, (".html", ".htm"), "a page")
        return write_atomically(path, lambda temporary: temporary.write_text(self.html, encoding="utf-8"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the page for notebooks: a sandboxed frame, and the still picture, if there is one."""
        size = f"width: 100%; height: {self.height}px; border: 1px solid #ddd; border-radius: 6px"
        page = html.escape(self.html)
        frame = f'<iframe title="interactive page" srcdoc="{page}" sandbox="allow-scripts" style="{size}"></iframe>'
        if self.draw_still is None:
            return {"text/html": frame, "text/plain": repr(self)}
        png = base64.b64encode(as_png(self.draw_still(), DPI)).decode()
        # A viewer that removes the frame also removes the style, which makes the picture visible.
        hidden = f'<img alt="the same maps as a still picture" style="display: none" src="data:image/png;base64,{png}">'
        return {"text/html": frame + hidden, "image/png": png, "text/plain": repr(self)}


def page_of(template: Path, title: str, content: dict[str, Any]) -> str:
    """Return the HTML of a page from its template, with the script and style sheet of the same name, if they exist.

    Templates extend page.html. The script reads `content` as JSON from the element `data`. The content security policy
    allows only this script and this style (by digests), and no network access.
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
    """Return a module and all its imports as one script. Top-level names of the modules must be unique."""
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
    """Return the camera and the palettes of light and dark colour schemes, for the script of a page."""
    ramps = {"light": attention_ramp(), "dark": attention_ramp(dark=True)}
    palettes = {screen: as_base64(np.round(ramp * 255).astype(np.uint8)) for screen, ramp in ramps.items()}
    view = {"azimuth": camera.azimuth, "elevation": camera.elevation, "distance": camera.distance}
    return {"camera": view, "palettes": palettes}


def as_base64(array: NDArray[Any]) -> str:
    """Return the bytes of an array as base64 text."""
    return base64.b64encode(array.tobytes()).decode()


def _digest(text: str) -> str:
    """Return the digest of a script or a style in the format of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
