"""Write a comparison as an HTML page with figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def templates() -> Environment:
    """The templates of this folder; they escape what is inserted."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from pointset.comparison.tables import is_words

    loader = PackageLoader("pointset.comparison", "report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.tests["words"] = is_words
    return environment
