"""An experiment as data: which models, which sets, which seeds, one protocol; a TOML file or keyword arguments.

    title = "DeepSets against Set Transformers"
    data = "modelnet40-hdf5"            # a card's name or a folder
    points = [100, 1000]                # sizes of set
    seeds = [0, 1, 2]
    models = ["rff-max", { name = "isab16-pma", seeds = "pooled" }]   # a name, or a name with options of its own
    robustness_seeds = [0]              # whose models are tested on corrupted and smaller sets too

    [sets]                              # fields of DataOptions but points
    [model]                             # fields of ModelOptions, for all models
    [recipe]                            # fields of Recipe
    [published.rff-max]                 # what others report, as [mean, standard deviation, runs] by size
    100 = [0.7951, 0.0166, 5]

In a file "none" stands for no value where a field may have none, as in `clip_norm = "none"`.
"""

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pointset.configuration import check_seed
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


class Published(NamedTuple):
    """An accuracy that somebody reports."""

    mean: float
    deviation: float
    runs: int


METRICS = ("mean-class accuracy", "log loss", "Brier score", "ECE", "ECE of equal mass")
USUAL_METRICS = ("mean-class accuracy", "log loss", "ECE")
LONGEST_LABEL = 150
"""Characters; file systems end at 255 bytes, and points and seed come after it."""


@dataclass(frozen=True)
class Entry:
    """One row of a comparison: a model's name and what sets it apart from the options that all share."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `ModelOptions`."""
    label: str = ""
    """What the row is called; the name and the changes when not given."""

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("label", self.label)):
            if not isinstance(text, str):
                raise PointsetError(f"{what}={text!r} is no text: a model's {what} is")
        described = [self.name, *(f"{key}={value}" for key, value in self.changes.items())]
        object.__setattr__(self, "label", self.label or " ".join(described))
        if len(self.label) > LONGEST_LABEL:
            raise PointsetError(
                f"{self.label[:30]!r}... is {len(self.label)} characters long, and names a folder: give the row a "
                f"label of at most {LONGEST_LABEL}"
            )

    @property
    def slug(self) -> str:
        """The label as part of a file's name."""
        return re.sub(r"[^\w.+=-]+", "_", self.label)

    def options(self, shared: ModelOptions) -> ModelOptions:
        """The model's options: the shared ones with the changes."""
        return ModelOptions.from_file({**shared.as_dict(), **self.changes})

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Self) -> "Entry":
        """From a name, or from a table with name, perhaps label, and changes."""
        if isinstance(given, Entry):
            return given
        if isinstance(given, str):
            return cls(given)
        if not isinstance(given, Mapping):
            raise PointsetError(f"{given!r} is no model: give a name, or a table with a name and options")
        if "name" not in given:
            raise PointsetError(f"a model needs a name: {dict(given)} has none")
        changes = {key: value for key, value in given.items() if key not in ("name", "label")}
        return cls(given["name"], changes, given.get("label", ""))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The grid model x size x seed and the protocol that its cells share."""

    models: tuple[Entry, ...]
    data: str = "shapes10"
    points: tuple[int, ...] = (1024,)
    """Sizes of set."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """One run per model, size and seed."""
    robustness_seeds: tuple[int, ...] = ()
    """Seeds whose models are also tested on corrupted and on smaller sets."""
    threads: int = 1
    """Of torch in each run; they can change results by rounding, so they are part of the protocol."""
    sets: DataOptions = field(default_factory=DataOptions)
    """All but the size."""
    model: ModelOptions = field(default_factory=ModelOptions)
    recipe: Recipe = field(default_factory=Recipe)
    metrics: tuple[str, ...] = USUAL_METRICS
    """What stands beside the accuracy in the table, of `METRICS`; the other files have all of them."""
    title: str = ""
    published: Mapping[str, Mapping[int, Published]] = field(default_factory=dict)
    """By label and size, for the eye: no figure depends on it."""

    def __post_init__(self) -> None:
        if not self.models or not self.seeds or not self.points:
            raise PointsetError("a comparison needs at least one model, one size and one seed")
        if self.threads < 1:
            raise PointsetError(f"threads={self.threads}: give at least 1")
        for seed in self.seeds:
            check_seed(seed)
        for points in self.points:
            self.sets_of(points)
        for what, values in (("model", self.labels), ("seed", self.seeds), ("size", self.points)):
            if len(set(values)) < len(values):
                raise PointsetError(f"a {what} is given twice: {', '.join(map(str, values))}")
        if unknown := set(self.robustness_seeds) - set(self.seeds):
            raise PointsetError(f"robustness_seeds {sorted(unknown)} are none of the seeds {list(self.seeds)}")
        for metric in self.metrics:
            if metric not in METRICS:
                near = difflib.get_close_matches(str(metric), METRICS, n=1, cutoff=0.0)
                raise PointsetError(
                    f"no metric is called {metric!r}: did you mean {near[0]!r}? Choose from {', '.join(METRICS)}; "
                    "accuracy is always there"
                )
        if strangers := set(self.published) - set(self.labels):
            raise PointsetError(f"published figures of {', '.join(sorted(strangers))}, which is none of the models")
        self._check_models()

    def _check_models(self) -> None:
        from pointset.zoo.names import used_options

        folders: dict[str, str] = {}
        for entry in self.models:
            used = used_options(entry.name)
            entry.options(self.model)
            if useless := [key for key in entry.changes if key not in used]:
                raise PointsetError(
                    f"{entry.name} has no use for {useless[0]}: leave it out; it has {', '.join(sorted(used))}"
                )
            other = folders.setdefault(entry.slug.casefold(), entry.label)  # some disks know no upper case
            if other != entry.label:
                raise PointsetError(f"{other!r} and {entry.label!r} would share a folder: give one another label")

    @property
    def labels(self) -> list[str]:
        """The rows, in the given order."""
        return [entry.label for entry in self.models]

    def sets_of(self, points: int) -> DataOptions:
        """The options of the sets of one size."""
        return dataclasses.replace(self.sets, points=points)

    def protocol(self) -> dict[str, Any]:
        """What all cells share and what decides their figures, as plain data."""
        sets = self.sets.as_dict()
        del sets["points"]
        return {
            "data": self.data,
            "sets": sets,
            "model": self.model.as_dict(),
            "recipe": self.recipe.as_dict(),
            "threads": self.threads,
        }

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "title": self.title,
            "models": [{"label": e.label, "name": e.name, **e.changes} for e in self.models],
            "points": list(self.points),
            "seeds": list(self.seeds),
            "robustness_seeds": list(self.robustness_seeds),
            "metrics": list(self.metrics),
            **self.protocol(),
        }


def read_experiment(path: str | Path, **changes: Any) -> Experiment:
    """Read an experiment from a TOML file.

    Args:
        path: of the file.
        changes: fields of `Experiment` that replace those of the file.

    Raises:
        PointsetError: the file is not there, is no TOML, or has an unknown or wrong entry; the file is named.
    """
    content = read_toml(path)
    try:
        return Experiment(**{**_fields(content), **changes})
    except (PointsetError, TypeError, ValueError) as error:
        raise PointsetError(f"{path}: {error}") from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of an experiment's file.

    Raises:
        PointsetError: the file is not there, or is no TOML; it is named.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PointsetError(f"there is no experiment {path}: give a TOML file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PointsetError(f"{path} is no TOML file: {error}") from error


KINDS: Mapping[str, tuple[type, str]] = {
    "title": (str, "text"),
    "data": (str, "text"),
    "threads": (int, "a whole number"),
    "models": (list, "a list of names, or of tables with a name"),
    "metrics": (list, "a list of names"),
    "sets": (dict, "a table"),
    "model": (dict, "a table"),
    "recipe": (dict, "a table"),
    "published": (dict, "a table for each model"),
}
"""What stands in a file, by key; whole numbers, one or several, stand under the others."""


def _fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Experiment` out of a file's content."""
    known = [entry.name for entry in dataclasses.fields(Experiment)]
    check_keys(content, known, KINDS)
    if "models" not in content:
        raise PointsetError('it names no models: add models = ["rff-max", "isab16-pma"], say')
    if "points" in content.get("sets", {}):
        raise PointsetError("sets.points is given: sizes of set stand in points, beside models")
    found = dict(content)
    found["models"] = tuple(Entry.of(given) for given in content["models"])
    if "metrics" in found:
        found["metrics"] = tuple(found["metrics"])
    for key in ("points", "seeds", "robustness_seeds"):
        if key in found:
            found[key] = whole_numbers(key, found[key])
    for key, kind in (("sets", DataOptions), ("model", ModelOptions), ("recipe", Recipe)):
        if key in found:
            found[key] = kind.from_file(found[key])
    found["published"] = {label: _published(label, sizes) for label, sizes in content.get("published", {}).items()}
    return found


def check_keys(content: Mapping[str, Any], known: Sequence[str], kinds: Mapping[str, tuple[type, str]]) -> None:
    """Raise a PointsetError for the first key that is unknown, or whose value is of another type than `kinds` says."""
    for key, value in content.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise PointsetError(f"{key!r} is unknown: did you mean {near[0]}? Known are {', '.join(known)}")
        if key in kinds:
            check_kind(key, value, *kinds[key])


def check_kind(key: str, value: Any, kind: type, wanted: str) -> None:
    """Raise a PointsetError unless a value is of a type; `wanted` says in words which."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PointsetError(f"{key}={value!r} is of the wrong type: give {wanted}")


def whole_numbers(key: str, value: Any) -> tuple[int, ...]:
    """One whole number or a list of them, or a PointsetError."""
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise PointsetError(f"{key}={value!r} are no whole numbers")
    return tuple(numbers)


def _published(label: str, sizes: Any) -> dict[int, Published]:
    """What others report of one model, by size of set."""
    check_kind(f"published.{label}", sizes, dict, "a table with sizes of set as keys")
    found = {}
    for size, figures in sizes.items():
        where = f"published.{label}.{size}"
        if not size.isdecimal():
            raise PointsetError(f"{where} is given: {size!r} is no size of set")
        wanted = "[mean, standard deviation, runs], with shares from 0 to 1"
        check_kind(where, figures, list, wanted)
        if not three_numbers(figures) or not 0 <= figures[0] <= 1 or not 0 <= figures[1] <= 1:
            raise PointsetError(f"{where}={figures!r} is no published accuracy: give {wanted}")
        found[int(size)] = Published(*figures)
    return found


def three_numbers(figures: Sequence[Any]) -> bool:
    """Whether a list is a mean, a deviation and a number of runs."""
    numbers = all(isinstance(figure, int | float) and not isinstance(figure, bool) for figure in figures)
    return numbers and len(figures) == 3 and figures[1] >= 0 and figures[2] >= 1
