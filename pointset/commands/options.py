"""Groups of flags that several commands share."""

from typing import Annotated

from cyclopts import Parameter, default_name_transform


def _recipe_flag(field: str) -> str:
    """The data set has a flag --points of its own."""
    return "train-points" if field == "points" else default_name_transform(field)


DataFlags = Parameter(name="*", group="Data")
ModelFlags = Parameter(name="*", group="Model")
RecipeFlags = Parameter(name="*", group="Recipe", name_transform=_recipe_flag)
Json = Annotated[bool, Parameter(name="--json")]
