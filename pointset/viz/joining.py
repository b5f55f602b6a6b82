"""One HTML file out of a template, a style, JavaScript modules and data: no bundler, no network, a policy inside."""

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
    """A page that needs nothing else.

    Args:
        body: an HTML file of the folder `web`, which comes into its frame.html; /*maps.html*/ in it is another file.
        styles: CSS files of that folder.
        script: the module that starts the page; it comes with all that it imports.
        title: of the window; escaped.
        content: what the page finds as JSON in its element `data`.

    The page's policy allows this script and this style by their digests, and no request whatever; WebAssembly only to a
    script that has some.
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
    # In one pass, so that a title such as "/*DATA*/" stays as it is.
    return re.sub(rf"/\*({'|'.join(parts)})\*/", lambda place: parts[place[1]], document)


def joined(start: str, folder: Traversable = WEB) -> str:
    """A module and all that it imports, as one script in which each keeps names of its own.

    A module becomes a function that returns what it exports. It exports functions, classes and constants where they are
    declared, and imports them by name from "./name.mjs".

    Raises:
        ValueError: modules import one another in a circle, or one imports or exports in another way.
    """
    found: dict[str, str] = {}
    _collect(start, folder, found, ())
    return "\n".join(['"use strict";', *found.values()])


def _collect(name: str, folder: Traversable, found: dict[str, str], importers: tuple[str, ...]) -> None:
    if name in importers:
        raise ValueError(f"modules import one another in a circle: {' -> '.join([*importers, name])}")
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
    """What a content security policy calls a script or a style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
