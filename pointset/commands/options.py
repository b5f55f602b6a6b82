"""Groups of flags that several commands share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import ArgumentCollection, Group, Parameter, default_name_transform

from pointset.errors import PointsetError, quoted

if TYPE_CHECKING:
    from pointset.runs.workers import Workers


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


def in_words(default: Any) -> str | None:
    """A default as one would type it; none where a flag that is left out says nothing."""
    if default is None or default is False or default == ():
        return None
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


RECIPE_NAMES = {"points": "train-points"}
"""Flags with another name than their field: the data set has a flag --points of its own."""


def _model_flag(field: str) -> str:
    """A comparison has --seeds of its own: those of random numbers."""
    return "pool-seeds" if field == "seeds" else default_name_transform(field)


def _recipe_flag(field: str) -> str:
    return RECIPE_NAMES.get(field, default_name_transform(field))


Flags = group("Parameters", Group.create_default_parameters().sort_key)
"""Of one command, and what matters most often; they come first."""
DataFlags = Parameter(name="*", group=group("Data", 2))
ModelFlags = Parameter(name="*", group=group("Model", 3), name_transform=_model_flag)
RecipeFlags = Parameter(name="*", group=group("Recipe", 4), name_transform=_recipe_flag)
Json = Annotated[bool, Parameter(name="--json")]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where work is done; it changes no result."""

    workers: int | None = None
    """processes at once; one per core, or all of a cluster's, when not given. Does not change the results."""
    backend: Literal["loky", "dask", "ray"] = "loky"
    """processes on this machine (loky), or a dask or ray cluster that sees the same folders."""
    scheduler: str | None = None
    """the cluster's address, such as tcp://host:8786."""

    def found(self) -> "Workers":
        """The workers that they name."""
        from pointset.runs.workers import Workers

        return Workers(self.workers, self.backend, self.scheduler)


@dataclass(frozen=True, kw_only=True)
class Running(Spread):
    """What is done with an experiment: it is run, or looked at."""

    threads: int | None = None
    """threads of each run; those of the experiment, usually 1, when not given."""
    dry_run: bool = False
    """print the runs and an estimate of time, and run nothing."""
    status: bool = False
    """print where every run stands, and run nothing."""
    report: bool = False
    """write tables and report anew of the runs that are finished, and run nothing."""


RunningFlags = Parameter(name="*", group=group("Running", 1))
HERE, RUN = Spread(), Running()
"""What holds when no flag says otherwise."""
