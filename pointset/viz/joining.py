"""Joins a template, styles, JavaScript modules and data to one HTML file that needs no network and no bundler."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

WEB = files("pointset.viz") / "web"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.mjs";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def page_of(body: str, styles: Sequence[str], script: str, title: str, content: dict[str, Any]) -> str:
    """Make a self-contained page.

    Its content security policy allows only this script and this style, by their digests, and no network requests;
    WebAssembly only if the script uses it.

    Args:
        body: an HTML file of the folder `web`, inserted in frame.html; /*NAME.html*/ in it is replaced by another file.
        styles: CSS files of that folder.
        script: name of the module that starts the page; its imports are included.
        title: title of the window; it is escaped here.
        content: data that the page reads as JSON from its element `data`.
    """
    style, program = "".join(_text(WEB / name) for name in styles), joined(script)
    inside = re.sub(r"/\*(\w+\.html)\*/", lambda place: _text(WEB / place[1]), _text(WEB / body))
    document = _text(WEB / "frame.html").replace("/*BODY*/", inside)
    # "<" could end the script element, even inside a JSON string.
    data = json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    assembly = " 'wasm-unsafe-eval'" * ("WebAssembly" in program)
    policy = (
        f"default-src 'none'; script-src {_digest(program)}{assembly}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"TITLE": html.escape(title), "STYLE": style, "SCRIPT": program, "DATA": data, "POLICY": policy}
    # In one pass, so that a title such as "/*DATA*/" is not replaced.
    return re.sub(rf"/\*({'|'.join(parts)})\*/", lambda place: parts[place[1]], document)


def joined(start: str, folder: Traversable = WEB) -> str:
    """Join a module and its imports to one script in which each module has its own scope.

    Each module becomes a function that returns its exports. A module must export functions, classes and constants in
    their declarations, and import by name from "./name.mjs".

    Raises:
        ValueError: modules import each other in a circle, or an import or export has another form.
    """
    found: dict[str, str] = {}
    _collect(start, folder, found, ())
    return "\n".join(['"use strict";', *found.values()])


def _collect(name: str, folder: Traversable, found: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"modules import each other in a circle: {' -> '.join([*importers, name])}")
    if name in found:
        return
    source = _text(folder / f"{name}.mjs")
    for _, other in IMPORT.findall(source):
        _collect(other, folder, found, (*importers, name))
    body = IMPORT.sub(lambda line: f"const {{{line[1].replace(' as ', ': ')}}} = {line[2]}Module;\n", source)
    body, exported = EXPORT.sub("", body), EXPORT.findall(body)
    if left := re.search(r"^(?:import|export)\b.*|.*</script.*|.*<!--.*", body, re.MULTILINE | re.IGNORECASE):
        raise ValueError(f"{name}.mjs: {left[0]!r} cannot be joined")
    found[name] = f"const {name}Module = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def _text(path: Traversable) -> str:
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest of a script or a style in the form of a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
