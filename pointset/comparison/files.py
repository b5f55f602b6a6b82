"""Read an experiment from a TOML file.

    title = "DeepSets against Set Transformers"
    task = "classification"             # the default, of point sets; for others see `pointset.tasks.registry`
    seeds = [0, 1, 2]                   # `seeds = 3` is the seed 3 alone, not three seeds
    models = ["rff-max", { name = "isab16-pma", seeds = "pooled" }]   # names, or names with options of their own

    data = "modelnet40-hdf5"            # options of the task; a table [options] is possible too
    points = [100, 1000]

    [model]                             # fields of ModelOptions, for all models
    [recipe]                            # fields of Recipe
    [published.rff-max]                 # published values, as [mean, standard deviation, runs], by size of set
    100 = [0.7951, 0.0166, 5]           # or, for a task without sizes, by metric

TOML has no null: "none" means None for fields that allow it, as in `clip_norm = "none"`.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Published
from pointset.comparison.task import Task
from pointset.configuration import Cores, check
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.zoo.names import load_files
from pointset.zoo.options import ModelOptions

Table = Annotated[dict[str, Any], Meta(description="a table")]
KEYS: Mapping[str, Any] = {
    "title": str,
    "task": str,
    "models": Annotated[list[Any], Meta(description="a list of names, or of tables with a name")],
    "seeds": Annotated[int | list[int], Meta(description="whole numbers")],
    "threads": Cores,
    "model": Table,
    "recipe": Table,
    "options": Table,
    "published": Annotated[dict[str, dict[str, Any]], Meta(description="a table for each model")],
}
"""Keys of an experiment's file for every task, and their types; other keys are options of the task."""


def read_experiment(path: str | Path, create: Callable[[str | None, Mapping[str, Any]], Task]) -> Experiment:
    """Read an experiment from a TOML file.

    Args:
        path: the file.
        create: makes a task from its name (None if the file gives none) and its options as written in the file.

    Raises:
        PointsetError: the file is missing, is not TOML, or has an unknown or wrong entry; the message names the file.
    """
    content = read_toml(path)
    load_files()  # here, so that an error in a file of parts is not reported as one of this TOML
    try:
        return _from_content(content, create)
    except PointsetError as error:
        raise PointsetError(f"{path}: {error}") from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """Parse the TOML file of an experiment.

    Raises:
        PointsetError: the file is missing or is not TOML; the message names it.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PointsetError(f"there is no experiment {path}: give a TOML file") from None
    except IsADirectoryError:
        raise PointsetError(f"{path} is a folder: give a TOML file") from None
    except RecursionError:
        raise PointsetError(f"{path} is not a TOML file that can be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:  # ValueError: wrong UTF-8, wrong syntax, or a number of thousands of digits
        raise PointsetError(f"{path} is not a TOML file: {one_line(error, REPEATED)}") from error


def _from_content(content: Mapping[str, Any], create: Callable[[str | None, Mapping[str, Any]], Task]) -> Experiment:
    for key, value in content.items():
        if key in KEYS:
            check(key, value, KEYS[key])
    options = {key: value for key, value in content.items() if key not in KEYS}
    for key in options:
        if key in content.get("options", {}):
            raise PointsetError(f"{quoted(key)} is given both inside and outside of [options]: give it once")
    task = create(content.get("task"), {**content.get("options", {}), **options})
    found: dict[str, Any] = {key: content[key] for key in ("title", "threads") if key in content}
    if "models" in content:
        found["models"] = tuple(Entry.of(given) for given in content["models"])
    if "seeds" in content:
        found["seeds"] = as_tuple(content["seeds"])
    if "model" in content:
        found["model"] = ModelOptions.from_file(content["model"])
    if "recipe" in content:
        found["recipe"] = task.recipe(**content["recipe"])
    published = content.get("published", {})
    found["published"] = {label: _published(label, rows) for label, rows in published.items()}
    return Experiment(task=task, **found)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list as a tuple; any other value as a tuple of one entry."""
    return tuple(value) if isinstance(value, list) else (value,)


def _published(label: str, rows: Mapping[str, Any]) -> dict[str | int, Published]:
    """The published values of one model; keys that are numbers are set sizes."""
    kind = Annotated[tuple[float, float, int], Meta(description="[mean, standard deviation, runs]")]
    for key, values in rows.items():
        check(f"published.{label}.{key}", values, kind)
    return {int(key) if key.isdecimal() else key: Published(*values) for key, values in rows.items()}
