"""What the pages of the API reference, in reference/, list: every public name, and what the examples begin with."""

import importlib
import re
import textwrap
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent / "reference"
NAME = re.compile(r"^\.\. auto(?:class|function|data):: (\S+)", re.MULTILINE)
PREAMBLE = textwrap.dedent((PAGES / "index.rst").read_text(encoding="utf-8").partition(".. code-block:: python")[2])
"""The program that the index shows; the examples of all docstrings run behind it."""


def all_names() -> list[str]:
    """Every public name of the reference."""
    return [name for page in sorted(PAGES.glob("*.rst")) for name in NAME.findall(page.read_text(encoding="utf-8"))]


def public(name: str) -> Any:
    """The object behind a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
