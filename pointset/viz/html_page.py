"""Pages in one HTML file: a template, a style sheet, JavaScript modules and data, without network or bundler."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pointset.runs.atomic import write_for_user
from pointset.viz.camera import Camera
from pointset.viz.color import ramp
from pointset.viz.writing import checked_suffix

WEB = files("pointset.viz") / "web"
SECTION = re.compile(r"<!--if (\w+)-->\n(.*?)<!--end-->\n", re.DOTALL)
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.mjs";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


@dataclass(frozen=True, eq=False, kw_only=True)
class HtmlPage:
    """A page in one HTML file, which a notebook shows in a frame.

    Example:
        >>> plain = pointset.describe_plainly(model)
        >>> page = pointset.viz.make_live_page([plain])
        >>> page.save("ask.html").stat().st_size > 100_000
        True
    """

    html: str
    """The whole page; it needs no network."""
    height: int = 720
    """Height of the frame in a notebook, in pixels; the page scrolls inside it."""

    def __repr__(self) -> str:
        """A summary in one line."""
        return f"{type(self).__name__} of {len(self.html) / 1e6:.1f} MB: `save` writes it, a notebook shows it"

    def save(self, path: str | Path) -> Path:
        """Write the page to a .html file.

        Raises:
            PointsetError: the path has another suffix, or cannot be written.
        """
        path = checked_suffix(path, (".html", ".htm"), "a page")
        return write_for_user(path, lambda temporary: temporary.write_text(self.html, encoding="utf-8"))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display({"text/html": inline(self.html, self.height), "text/plain": "an interactive page"}, raw=True)


def inline(page: str, height: int = 720) -> str:
    """A page as a self-contained, sandboxed frame for notebooks.

    Args:
        page: HTML of the page.
        height: height of the frame, in pixels.

    Returns:
        HTML of the frame.

    Example:
        >>> "<iframe" in pointset.viz.inline("<p>a page</p>", height=100)
        True
    """
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 1px solid #ddd; border-radius: 6px"></iframe>'
    )


def page_of(kind: Literal["maps", "live"], title: str, content: dict[str, Any]) -> str:
    """The HTML of a page of maps or of a live page.

    Its content security policy allows only this script and this style, by their digests, and no network requests;
    WebAssembly only if the script uses it.

    Args:
        kind: the kind of the page: the sections of page.html that it has, and the module that starts it.
        title: title of the window; it is escaped here.
        content: data that the page reads as JSON from its element `data`.
    """
    style, script = _text(WEB / "page.css"), joined({"maps": "page", "live": "live"}[kind])
    document = SECTION.sub(lambda section: section[2] if section[1] == kind else "", _text(WEB / "page.html"))
    # "<" could end the script element, even inside a JSON string.
    data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    assembly = " 'wasm-unsafe-eval'" * ("WebAssembly" in script)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}{assembly}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    values = {"TITLE": html.escape(title), "STYLE": style, "SCRIPT": script, "DATA": data, "POLICY": policy}
    # In one pass, so that a title such as "/*DATA*/" is not replaced.
    return re.sub(rf"/\*({'|'.join(values)})\*/", lambda name: values[name[1]], document)


def joined(start: str, folder: Traversable = WEB) -> str:
    """Join a module and its imports to one script in which each module has its own scope.

    Each module becomes a function that returns its exports. A module must export functions, classes and constants in
    their declarations, and import by name from "./name.mjs".

    Raises:
        ValueError: modules import each other in a circle, or an import or export has another form.
    """
    scripts: dict[str, str] = {}

    def collect(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other in a circle: {' -> '.join([*importers, name])}")
        if name in scripts:
            return
        source = _text(folder / f"{name}.mjs")
        for _, other in IMPORT.findall(source):
            collect(other, (*importers, name))
        body = IMPORT.sub(lambda line: f"const {{{line[1].replace(' as ', ': ')}}} = {line[2]}Module;\n", source)
        body, exported = EXPORT.sub("", body), EXPORT.findall(body)
        if other := re.search(r"^(?:import|export)\b.*|.*</script.*|.*<!--.*", body, re.MULTILINE | re.IGNORECASE):
            raise ValueError(f"{name}.mjs: {other[0]!r} cannot be joined")
        scripts[name] = f"const {name}Module = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"

    collect(start, ())
    return "\n".join(['"use strict";', *scripts.values()])


def view_content(camera: Camera, colors: str) -> dict[str, Any]:
    """The camera and the palettes of a colour map, for the script of a page."""
    palettes = {paper: as_base64(np.round(ramp(colors, paper) * 255).astype(np.uint8)) for paper in ("light", "dark")}
    view = {"azimuth": camera.azimuth, "elevation": camera.elevation, "distance": camera.distance}
    return {"camera": view, "palettes": palettes}


def as_base64(array: NDArray[Any]) -> str:
    """The bytes of an array as text."""
    return base64.b64encode(array.tobytes()).decode()


def _text(path: Traversable) -> str:
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest of a script or a style in the form of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
