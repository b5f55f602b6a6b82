"""The flags of `pointset train` and `pointset compare`: their defaults are those of the shipped quick.toml.

All but one: that trainings see a share of the points was chosen for the sets of that file, and holds for them alone.
"""

import dataclasses
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

from pointset.commands.options import RECIPE_NAMES, Flags
from pointset.configuration import Checked, renamed
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.tasks.shipped import shipped_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

Options = TypeVar("Options", bound=Checked)
FILE = shipped_experiment("quick")


def _flags(
    options: type[Options], usual: dict[str, Any], first: tuple[str, ...], names: dict[str, str]
) -> type[Options]:
    """The same options with other defaults, which the parser takes for flags that are not given.

    Those of `first` stand at the top of the help. Errors have the flags' `names`, where these are not the fields'.
    """

    def check(self: Any) -> None:
        try:
            options.__post_init__(self)
        except PointsetError as error:
            raise PointsetError(renamed(str(error), names)) from error

    checks = {"__post_init__": check}
    plain = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    fields = []
    for name in dict.fromkeys((*first, *usual)):
        kind = Annotated[plain[name].type, Parameter(group=Flags)] if name in first else plain[name].type
        value = usual.get(name, plain[name].default)
        fields.append((name, kind, dataclasses.field(default=tuple(value) if isinstance(value, list) else value)))
    made = dataclasses.make_dataclass(
        f"Quick{options.__name__}", fields, bases=(options,), namespace=checks, frozen=True, kw_only=True
    )
    made.__module__ = __name__  # the parser takes a class of another module for a type of the standard library
    return made


_quick = tomllib.loads(FILE.read_text(encoding="utf-8"))
NAME = _quick["data"]
_share = _quick["recipe"].pop("points_share")
_data = {"points": _quick["points"][0], **_quick.get("sets", {})}
if TYPE_CHECKING:
    QuickData = DataOptions
    QuickModel = ModelOptions
    QuickRecipe = Recipe
else:
    QuickData = _flags(DataOptions, _data, ("points", "features"), {})
    QuickModel = _flags(ModelOptions, _quick["model"], ("dim",), {})
    QuickRecipe = _flags(Recipe, _quick["recipe"], ("epochs", "learning_rate", "augment"), RECIPE_NAMES)
DATA, MODEL, RECIPE = QuickData(), QuickModel(), QuickRecipe()
"""The defaults of these flags. `compare` finds by identity whether a flag was given."""


def plain(
    data: str | None, sets: DataOptions, model: ModelOptions, recipe: Recipe
) -> tuple[DataOptions, ModelOptions, Recipe]:
    """The same in the library's own classes, which other processes know, on the data of this name; None is the file's.

    The file's size of the training sets is used too, if its data is used and no flag gives a size.
    """
    plain_recipe = Recipe.from_dict(recipe.as_dict())
    if data in (None, _quick["data"]) and recipe.points is None and recipe.points_share is None:
        plain_recipe = dataclasses.replace(plain_recipe, points_share=_share)
    return DataOptions.from_dict(sets.as_dict()), ModelOptions.from_dict(model.as_dict()), plain_recipe
