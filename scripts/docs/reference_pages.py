"""Generate the API reference: one page per public package, from the names in its `__all__`."""

import importlib
import inspect
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pointset

INDEX = Path(__file__).parent / "reference" / "index.rst"
PREAMBLE = textwrap.dedent(INDEX.read_text(encoding="utf-8").partition(".. code-block:: python")[2])
"""The program on the index page. The examples of all docstrings assume that it has been run."""


@cache
def packages() -> dict[str, ModuleType]:
    """The public packages by name, from the top level."""
    public_modules = (getattr(pointset, name) for name in vars(pointset)["__all__"])
    return {module.__name__: module for module in [pointset, *filter(inspect.ismodule, public_modules)]}


@cache
def names_of_pages() -> dict[str, list[str]]:
    """The dotted names on the page of each package; an object that several packages export is on the first page."""
    pages: dict[str, list[str]] = {}
    documented: set[int] = set()
    for package, module in packages().items():
        pages[package] = []
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isroutine(value)) and id(value) not in documented:
                documented.add(id(value))
                pages[package].append(f"{package}.{name}")
    return pages


def all_names() -> list[str]:
    """Every public class and function of the reference."""
    return [name for names in names_of_pages().values() for name in names]


def public(name: str) -> Any:
    """Return the object with a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def page(package: str) -> str:
    """The page of a package in reStructuredText; its names are grouped by the module that defines them."""
    names = names_of_pages()[package]
    blocks = [f"{package}\n{'=' * len(package)}", f".. automodule:: {package}"]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(group_of(package, name), []).append(name)
    for title, members in groups.items():
        if len(groups) > 1 and title:
            blocks.append(f"{title}\n{'-' * len(title)}")
        blocks += map(directive, members)
    if elsewhere := exported_elsewhere(package):
        links = ", ".join(f":py:obj:`{name}`" for name in elsewhere)
        blocks.append(f"This package also exports {links}.")
    return "\n\n".join(blocks) + "\n"


def group_of(package: str, name: str) -> str:
    """The heading for a name: the subpackage or module of the package that defines it."""
    module = public(name).__module__
    inside = module.removeprefix(f"{package}.") if module.startswith(f"{package}.") else module.rpartition(".")[2]
    return inside.partition(".")[0].replace("_", " ").capitalize()


def directive(name: str) -> str:
    """The Sphinx directive that documents a name."""
    if inspect.isclass(public(name)):
        return f".. autoclass:: {name}\n   :members:"
    return f".. autofunction:: {name}"


def exported_elsewhere(package: str) -> list[str]:
    """Names of the objects that a package exports, but that are documented on pages of other packages."""
    module, here = packages()[package], {*names_of_pages()[package]}
    values = [getattr(module, name) for name in module.__all__ if f"{package}.{name}" not in here]
    by_object = {id(public(name)): name for name in all_names()}
    return [by_object[id(value)] for value in values if id(value) in by_object]
