"""The flags of `pointset compare` without a file: their defaults are those of the shipped quick.toml."""

import dataclasses
import tomllib
from typing import Any, TypeVar

from pointset.configuration import Checked
from pointset.data.options import DataOptions
from pointset.tasks.shipped import shipped_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

Options = TypeVar("Options", bound=Checked)
FILE = shipped_experiment("quick")


def _with_defaults(options: type[Options], values: dict[str, Any]) -> type[Options]:
    """The same options with other defaults: the parser takes those of the class for flags that are not given."""
    kinds = {field.name: field.type for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    defaults = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    fields = [(name, kinds[name], dataclasses.field(default=value)) for name, value in defaults.items()]
    made = dataclasses.make_dataclass(f"Quick{options.__name__}", fields, bases=(options,), frozen=True, kw_only=True)
    made.__module__ = __name__  # the parser takes a class of another module for a type of the standard library
    return made


_quick = tomllib.loads(FILE.read_text(encoding="utf-8"))
QuickData = _with_defaults(DataOptions, {"points": _quick["points"][0], **_quick.get("sets", {})})
QuickModel = _with_defaults(ModelOptions, _quick["model"])
QuickRecipe = _with_defaults(Recipe, _quick["recipe"])
DATA, MODEL, RECIPE = QuickData(), QuickModel(), QuickRecipe()
"""The defaults of these flags. `compare` finds by identity whether a flag was given."""
