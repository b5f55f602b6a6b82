"""Import of public names on first use. The error for an unknown name suggests similar names."""

import difflib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import lazy_loader


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package, from its stub `__init__.pyi`."""
    find, listed, names = lazy_loader.attach_stub(package, file)

    def find_or_suggest(name: str) -> Any:
        if name in names or name.startswith("_"):
            return find(name)
        raise AttributeError(f"{package} has no {name}{_hint(package, name, names)}")

    return find_or_suggest, listed, names


def _hint(package: str, name: str, names: list[str]) -> str:
    """Return a hint for an unknown name: the package that has this name, or similar names."""
    root = import_module("pointset")
    packages = [f"pointset.{part}" for part in root.__all__ if find_spec(f"pointset.{part}")]
    places = {public: part for part in packages for public in getattr(import_module(part), "__all__", ())}
    places |= dict.fromkeys(root.__all__, "pointset") | dict.fromkeys(names, package)
    near = [name] if name in places else difflib.get_close_matches(name, places, n=2, cutoff=0.7)
    said = " or ".join(f"{places[one]}.{one}" for one in near)
    return f": did you mean {said}?" if near else ""
