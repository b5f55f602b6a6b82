"""Checked configurations: frozen dataclasses that a flag or a file fills and that are saved beside results.

Types and ranges stand in the annotations, and msgspec checks them when an object is made, so that direct construction,
files and flags are all checked alike. Nothing heavy is imported here, so that `pointset --help` answers at once.
"""

import dataclasses
import numbers
import sys
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from pointset.errors import PointsetError

FINITE = sys.float_info.max

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number in [0, 2^63)")]
"""The generators of torch and numpy both take it."""
Count = Annotated[int, Meta(ge=1, description="a whole number, at least 1")]
Positive = Annotated[float, Meta(gt=0, le=FINITE, description="a finite number above 0")]
NonNegative = Annotated[float, Meta(ge=0, le=FINITE, description="a finite number, at least 0")]
Share = Annotated[float, Meta(ge=0, lt=1, description="in [0, 1)")]

Form = Literal["reference", "paper"]
Scale = Literal["model", "head"] | Positive
NormName = Literal["none", "layer", "set", "group", "instance", "batch"]
ScoreName = Literal["dot", "bilinear", "additive"]
WeightsName = Literal["softmax", "sparsemax", "entmax15", "csoftmax", "csparsemax"]
CONSTRAINED: tuple[WeightsName, ...] = ("csoftmax", "csparsemax")
"""Weights with an upper bound."""
Coverage = Literal["none", "seeds", "heads"]
SeedSource = Literal["trained", "pooled", "mean", "max", "statistics"]
InitialName = Literal["normal", "xavier"]


def own_norm(form: Form) -> NormName:
    """The norm that a published form of MAB has by itself."""
    return "layer" if form == "paper" else "none"


class Checked:
    """Base of the configurations: every field is checked when the object is made."""

    def __post_init__(self) -> None:
        for name, kind in _kinds(type(self)).items():
            check(name, getattr(self, name), kind)

    @classmethod
    def from_file(cls, values: dict[str, Any]) -> Self:
        """Build from a TOML table, which has no null: "none" stands for no value where a field may have none."""
        kinds = _kinds(cls)
        absent = [
            name
            for name, value in values.items()
            if value == "none" and name in kinds and _fits(None, kinds[name]) and not _fits("none", kinds[name])
        ]
        return cls.from_dict({**values, **dict.fromkeys(absent)})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build from a mapping, where lists may be tuples; an unknown key is an error that lists the known ones."""
        known = _kinds(cls)
        for key in values:
            if key not in known:
                raise PointsetError(f"{key!r} is not an option of {cls.__name__}: known are {', '.join(known)}")
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON: lists for tuples."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def check(name: str, value: Any, kind: Any) -> None:
    """Raise a PointsetError that names the value and what is allowed, unless it fits an annotated type."""
    if not _fits(value, kind):
        raise PointsetError(f"{name} must be {_allowed(kind)}, got {value!r}")


def check_seed(seed: int, name: str = "seed") -> None:
    """Raise a PointsetError for a number that cannot seed a generator."""
    check(name, seed, Seed)


def _kinds(cls: type) -> dict[str, Any]:
    """The annotated types of a configuration's fields."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, numbers.Number) and hasattr(value, "item"):  # a number of numpy
        value = value.item()
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _allowed(kind: Any) -> str | None:
    """What an annotated type allows, in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return next(part.description for part in parts if isinstance(part, Meta))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple:
        return f"a list, each entry {_allowed(parts[0])}"
    if origin in (UnionType, Union):  # `Literal[...] | None` makes the second
        return " or ".join(str(_allowed(part)) for part in parts if part is not NoneType)
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
