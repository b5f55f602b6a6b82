"""Groups of flags that several commands share."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from cyclopts import ArgumentCollection, Group, Parameter, default_name_transform
from cyclopts.help import DefaultFormatter, HelpPanel

from pointset.configuration import Checked, Cores, check
from pointset.data.axes import FileUp
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, quoted
from pointset.runs.atomic import check_writable, checked_suffix
from pointset.runs.workers import Workers
from pointset.tasks.bundled import Options, bundled_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


def check_numbers(flags: ArgumentCollection) -> None:
    """Raise a PointsetError for a number outside its range, or for 1.5 instead of an integer (the parser rounds it)."""
    for flag in flags:
        values = flag.value if isinstance(flag.value, tuple) else (flag.value,)
        for token, value in zip(flag.tokens, values, strict=False):
            if type(value) is int and "." in token.value and float(token.value) != value:
                raise PointsetError(f"{flag.name} must be a whole number, got {quoted(token.value)}")
        if isinstance(flag.value, int | float):
            check(flag.name, flag.value, flag.field_info.annotation)


def group(title: str, sort_key: Any = None, **options: Any) -> Group:
    """Return a group of flags under a title in the help."""
    return Group(title, sort_key=sort_key, validator=check_numbers, **options)


def flags_in(tokens: Sequence[str]) -> frozenset[str]:
    """Return the names of the flags in a command line, without the leading hyphens."""
    names = (token[2:].partition("=")[0] for token in tokens if token.startswith("--"))
    return frozenset(name.replace("_", "-") for name in names)  # the parser accepts both


def in_words(default: Any) -> str | None:
    """Return a default as a user would type it, or None for a flag without a meaningful default."""
    if default is None or default is False or default == ():
        return None
    return " ".join(map(str, default)) if isinstance(default, tuple | list) else str(default)


QUICK = tomllib.loads(bundled_experiment("quick").read_text(encoding="utf-8"))
"""The experiment whose options are the defaults of `train` and `compare`."""
QUICK_SETS = {"points": QUICK["points"][0], **QUICK.get("sets", {})}


class Chosen(NamedTuple):
    """The options that the user set by flags, by group."""

    sets: dict[str, Any]
    model: dict[str, Any]
    recipe: dict[str, Any]

    @classmethod
    def by(cls, given: frozenset[str], *groups: Checked) -> Self:
        """Return the fields of these groups that the user set by flags."""
        return cls(
            *(
                {name: value for name, value in values.items() if default_name_transform(name) in given}
                for values in (group.flat() if isinstance(group, ModelOptions) else vars(group) for group in groups)
            )
        )


def quick_options(data: str) -> Options:
    """Return the options of quick.toml. The option `train_points` is only used for the dataset of quick.toml."""
    recipe = Recipe.from_dict(QUICK["recipe"] | ({} if data == QUICK["data"] else {"train_points": None}))
    return Options(DataOptions.from_dict(QUICK_SETS), ModelOptions.from_dict(QUICK["model"]), recipe)


class ShownDefaults(DefaultFormatter):
    """A panel of the help that shows the defaults of an experiment."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        self.defaults = {f"--{default_name_transform(name)}": in_words(value) for name, value in values.items()}

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        """Draw the panel."""
        entries = [
            entry.copy(default=self.defaults.get("".join(entry.names[:1]), entry.default)) for entry in panel.entries
        ]
        super().__call__(console, options, panel.copy(entries=entries))


def option_flags(title: str, sort_key: int, defaults: Mapping[str, Any]) -> Parameter:
    """Return the parameter that makes a flag of each field of an options class, in a panel with these defaults."""
    panel = group(title, sort_key, help_formatter=ShownDefaults(defaults))
    return Parameter(name="*", group=panel)


Flags = group("Parameters", Group.create_default_parameters().sort_key)
"""Flags of a single command. They come first in the help."""
POINTS = f"{QUICK_SETS['points']}; {DataOptions().points} for `compare --data` and `train` without MODEL"
DataFlags = option_flags("Data", 2, QUICK_SETS | {"points": POINTS})
ModelFlags = option_flags("Model", 3, QUICK["model"])
RecipeFlags = option_flags("Recipe", 4, QUICK["recipe"])
OUT = ("--out", "-o")
Out = Annotated[Path, Parameter(name=OUT)]
"""The file or folder that a command writes."""


def out_file(what: str, *suffixes: str, names: tuple[str, ...] | None = OUT) -> Parameter:
    """Return the flag for output files with one of these suffixes. The paths are checked before any work."""

    def check_files(_: Any, paths: Path | tuple[Path, ...] | None) -> None:
        for path in paths if isinstance(paths, tuple) else filter(None, (paths,)):
            check_writable(checked_suffix(path, suffixes, what))

    return Parameter(name=names, validator=check_files)


Predictions = Annotated[Path, out_file("a file of predictions", ".csv")]
Given = Annotated[frozenset[str], Parameter(parse=False)]
"""Names of the flags in the command line, set by `pointset.commands.app`. Values do not show them, because a value can
equal the default."""


@dataclass(frozen=True, kw_only=True)
class Running(Workers):
    """How to run an experiment, or only report it."""

    threads: Cores | None = None
    """Threads per run; default: as in the experiment, usually 1."""
    report: bool = False
    """Rewrite the tables and the report from the finished runs, without training."""


RunningFlags = Parameter(name="*", group=group("Running", 1))


Up = Annotated[
    FileUp,
    Parameter(
        help="The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the upward axis of "
        "the training shapes. Shapes with another axis are rotated. Write --up=-y for a negative axis."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files of shapes are read."""

    on_error: Literal["raise", "skip"] = "raise"
    """How to handle files that cannot be used: "raise" reads all files, then reports the faulty ones and writes
    nothing; "skip" continues without them."""
    remove_outliers: bool | None = None
    """Remove points of a point cloud that are far from all other points (statistical outlier removal); default: as in
    training."""
    up: Up = "auto"


ReadingFlags = Parameter(name="*")
