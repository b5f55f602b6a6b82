"""Groups of flags that several commands share."""

from typing import Annotated

from cyclopts import Parameter

DataFlags = Parameter(name="*", group="Data")
ModelFlags = Parameter(name="*", group="Model")
RecipeFlags = Parameter(name="*", group="Recipe")
Json = Annotated[bool, Parameter(name="--json")]
