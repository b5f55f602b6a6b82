"""Groups of flags that several commands share."""

from collections.abc import Callable, Sequence
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


def flags_in(tokens: Sequence[str]) -> frozenset[str]:
    """The names of the flags in a command line, without hyphens in front."""
    return frozenset(token[2:].partition("=")[0] for token in tokens if token.startswith("--"))


def given_fields(
    options: Any, given: frozenset[str], flag: Callable[[str], str] = default_name_transform
) -> dict[str, Any]:
    """The fields of a group of options whose flags are in the command line."""
    return {name: value for name, value in vars(options).items() if flag(name) in given}


def in_words(default: Any) -> str | None:
    """A default as a user would type it; None for a flag without a meaningful default."""
    if default is None or default is False or default == ():
        return None
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


RECIPE_NAMES = {"points": "train-points"}
"""Flags whose name differs from their field: the dataset already has a flag --points."""


def model_flag(field: str) -> str:
    """Rename `seeds`: a comparison already has --seeds, for random numbers."""
    return "pool-seeds" if field == "seeds" else default_name_transform(field)


def recipe_flag(field: str) -> str:
    """Rename `points`: see `RECIPE_NAMES`."""
    return RECIPE_NAMES.get(field, default_name_transform(field))


Flags = group("Parameters", Group.create_default_parameters().sort_key)
"""Flags of a single command and the most important options; they come first in the help."""
DataFlags = Parameter(name="*", group=group("Data", 2))
ModelFlags = Parameter(name="*", group=group("Model", 3), name_transform=model_flag)
RecipeFlags = Parameter(name="*", group=group("Recipe", 4), name_transform=recipe_flag)
Json = Annotated[bool, Parameter(name="--json")]
KeepOutliers = Annotated[
    bool, Parameter(name="--keep-outliers", help="Keep isolated points of point clouds, such as a background.")
]
Given = Annotated[frozenset[str], Parameter(parse=False)]
"""Filled by `pointset.commands.app` with the flags of the command line: a flag may repeat a default."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where work is done; this does not change any result."""

    workers: int | None = None
    """Number of parallel processes; default: one per core, or all of a cluster. Does not change the results."""
    backend: Literal["loky", "dask", "ray"] = "loky"
    """Processes on this machine (loky), or a dask or ray cluster with access to the same folders."""
    scheduler: str | None = None
    """Address of the cluster, such as tcp://host:8786."""

    def found(self) -> "Workers":
        """The workers that these flags describe."""
        from pointset.runs.workers import Workers

        return Workers(self.workers, self.backend, self.scheduler)


@dataclass(frozen=True, kw_only=True)
class Running(Spread):
    """What to do with an experiment: run it, or inspect it."""

    threads: int | None = None
    """Threads per run; default: as in the experiment, usually 1."""
    dry_run: bool = False
    """Print the runs and an estimate of the time, without running anything."""
    status: bool = False
    """Print the state of every run, without running anything."""
    report: bool = False
    """Rewrite tables and report from the finished runs, without running anything."""


RunningFlags = Parameter(name="*", group=group("Running", 1))
HERE, RUN = Spread(), Running()
"""The defaults, without any flag."""
