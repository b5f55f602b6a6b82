"""The content of run.json: types of the fields that are read, and the fields that a model of the zoo needs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from pointset.configuration import Count, Positive, Seed
from pointset.data.options import Normalize
from pointset.errors import PointsetError, quoted


class _Machine(TypedDict):
    system: str
    cores: int
    accelerator: str | None
    threads: int


class _Recipe(TypedDict, total=False):
    epochs: int | None
    validation: float | None


class _Model(TypedDict, total=False):
    name: str
    classes: int
    inputs: Count
    seed: Seed
    options: dict[str, Any]
    members: list[dict[str, Any]]


class DataDescription(TypedDict, total=False):
    """Types of the fields of `PointSets.describe` that are read."""

    name: str
    source: str
    split: str
    shapes: int
    skipped: int
    classes: list[str]
    normalize: Normalize
    preparation: dict[str, Any]
    fingerprint: str


class RunDescription(TypedDict, total=False):
    """Types of the fields of run.json that are read; a custom model has only a part of them."""

    model: _Model
    recipe: _Recipe
    seed: int
    data: DataDescription
    validation: list[int]
    temperature: Positive
    versions: dict[str, str]
    machine: _Machine
    commit: str | None


OF_DATA = ("source", "classes", "normalize")
OF_MODEL = ("name", "classes", "inputs", "seed", "options")
REQUIRED_KEYS = {
    "model": OF_MODEL,
    "data": (*OF_DATA, "fingerprint", "preparation"),
    "recipe": ("validation",),
    "seed": (),
}
"""What the run.json of a model of the zoo has at least."""


def check_run(description: Mapping[str, Any], file: Path) -> None:
    """Raise a PointsetError unless run.json describes a model of the zoo, with all that is needed to use it."""
    model, data = description.get("model", {}), description.get("data", {})
    if "class" in model and "name" not in model:
        raise PointsetError(
            f"{file.parent} holds a custom model ({model['class']}): build it and load model.safetensors into it"
        )
    missing = [part for part in REQUIRED_KEYS if part not in description] or [
        f"{part}.{name}" for part, names in REQUIRED_KEYS.items() for name in names if name not in description[part]
    ]
    if missing:
        raise not_a_run(file, f"it has no {missing[0]}")
    if (names := len(data.get("classes", ()))) != model["classes"]:
        raise not_a_run(file, f"data.classes are {names} names for {model['classes']} classes")
    if twice := {name for name in data["classes"] if data["classes"].count(name) > 1}:
        raise not_a_run(file, f"data.classes has {quoted(min(twice))} twice")


def not_a_run(file: Path, reason: str) -> PointsetError:
    """The error for a run.json that cannot be used."""
    return PointsetError(f"{file} does not describe a run ({reason}): restore it from a copy, or train again")
