"""Groups of flags that several commands share."""

from typing import Annotated, Any

from cyclopts import ArgumentCollection, Group, Parameter, default_name_transform

from pointset.errors import PointsetError, quoted


def require_whole(flags: ArgumentCollection) -> None:
    """Refuse 1.5 for a whole number: the parser rounds it to 2."""
    for flag in flags:
        values = flag.value if isinstance(flag.value, tuple) else (flag.value,)
        for token, value in zip(flag.tokens, values, strict=False):
            if type(value) is int and "." in token.value and float(token.value) != value:
                raise PointsetError(f"{flag.name} must be a whole number, got {quoted(token.value)}")


def group(title: str, sort_key: Any = None) -> Group:
    """A group of flags under a title in the help."""
    return Group(title, sort_key=sort_key, validator=require_whole)


def _recipe_flag(field: str) -> str:
    """The data set has a flag --points of its own."""
    return "train-points" if field == "points" else default_name_transform(field)


Flags = group("Parameters", Group.create_default_parameters().sort_key)
"""Of one command; they come first."""
DataFlags = Parameter(name="*", group=group("Data"))
ModelFlags = Parameter(name="*", group=group("Model"))
RecipeFlags = Parameter(name="*", group=group("Recipe"), name_transform=_recipe_flag)
Json = Annotated[bool, Parameter(name="--json")]
