"""The JavaScript readers accept and reject the same files as the Python readers, for all files of their tests."""

import base64
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pointset.data import read_mesh
from pointset.errors import PointsetError

FILES = Path(__file__).parents[1] / "data" / "files"
READ = """given.map(({ name, bytes }) => {
  try { return [...readShape(Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0)), name).vertices]; }
  catch (error) { return error.constructor.name === "ReadError" ? error.message : null; }
})"""
LINE = re.compile(r"line (\d+)\b")
OTHERWISE = {"cut in the faces", "cut in the vertices", "no faces", "no corners", "more than can be"}
"""Where Python names another line, or none: what is wrong stands in the header, and the page sees it later."""


def tables_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"files_{name}", FILES / f"test_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def contents() -> Iterator[tuple[str, str, bytes]]:
    """Suffix, description, and content of each file."""
    obj, off, stl, ply = (tables_of(name) for name in ("obj", "off", "stl", "ply_meshes"))
    found: list[tuple[str, str, Any]] = [("obj", *one) for one in (obj.SPELLINGS | obj.ODD_SPELLINGS).items()]
    found += [("obj", name, bad[0] and obj.HEAD + bad[0]) for name, bad in obj.BAD_FILES.items()]
    found += [("off", *one) for one in off.SPELLINGS.items()]
    found += [("off", name, bad[0]) for name, bad in off.BAD_FILES.items()]
    found += [("stl", *one) for one in (stl.USUAL | stl.ODD).items()]
    found += [("stl", name, bad[0]) for name, bad in (stl.BAD_TEXT | stl.BAD_BINARY).items()]
    found += [("ply", name, bad[0]) for name, bad in ply.BAD_TEXT.items()]
    for ending, name, content in found:
        if content is not None:
            yield ending, name, content if isinstance(content, bytes) else content.encode()


def test_pages_and_python_agree_on_every_hostile_file(in_node: Callable[..., Any], tmp_path: Path) -> None:
    cases = list(contents())
    given = [
        {"name": f"{place}.{ending}", "bytes": base64.b64encode(content).decode()}
        for place, (ending, _, content) in enumerate(cases)
    ]
    apart = []
    for (ending, odd, content), one, found in zip(cases, given, in_node("readers", READ, given), strict=True):
        file = tmp_path / one["name"]
        file.write_bytes(content)
        try:
            expected: Any = read_mesh(file).vertices.ravel().tolist()
        except PointsetError as error:
            expected = str(error)
        same = found == expected
        if isinstance(found, str) and isinstance(expected, str):
            lines = [LINE.search(said) for said in (found, expected)]
            same = odd in OTHERWISE or lines[1] is None or (lines[0] is not None and lines[0][1] == lines[1][1])
        if not same:
            apart.append((ending, odd, found, expected))
    assert not apart
    assert len(cases) > 150
