"""Trained models: folders of training runs, and the trained models of the package, whose folders also have a card.

The name of a trained model of the package consists of the model, a dot, and the training data:
"isab16-pma.modelnet40-1024". Every function that takes the folder of a run also takes such a name.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

import msgspec

from pointset.configuration import Checked, Count, Positive, Seed, Text, check_once
from pointset.data.options import Normalize
from pointset.errors import PointsetError, quoted
from pointset.runs import records

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = Path(__file__).parent / "trained"
USUAL = "isab16-pma.modelnet40-1024"
"""The default model of the commands."""
ANY_POSE = "dumlp16-max+dumlp16.modelnet40-1024-any"
"""The default model for shapes that are not upright."""
REINSTALL = "install pointset again"
WEIGHTS = "model.safetensors"


class _Model(TypedDict):
    name: str
    classes: int
    inputs: Count
    seed: Seed
    options: dict[str, Any]
    members: NotRequired["list[_Model]"]


class _Data(TypedDict):
    source: str
    classes: list[str]
    normalize: Normalize
    preparation: dict[str, Any]
    fingerprint: str


class _Recipe(TypedDict):
    validation: float | None


class RunDescription(TypedDict):
    """Required content of run.json, the description of a training run."""

    model: _Model
    data: _Data
    recipe: _Recipe
    seed: int
    validation: NotRequired[list[int]]
    temperature: NotRequired[Positive]


class TestedAccuracy(NamedTuple):
    """An accuracy on test shapes, with its 95 % interval."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PretrainedCard(Checked):
    """Facts about a trained model in addition to run.json (model, options, data, classes, recipe, commit, seed)."""

    title: Text
    data: Text
    """Name of the card of the training dataset."""
    parameters: Count
    multiply_adds: Count
    """Number of multiply-adds for a set of 1,024 points."""
    accuracy: Mapping[str, TestedAccuracy] = field(default_factory=dict)
    """Accuracy on the official test split, by number of points per set."""
    deciding: Count | None = None
    """Median number of points (of 1,024) with non-zero pooling weight; None if all points have non-zero weight."""
    temperature: Positive
    """Logits are divided by this temperature before the softmax. It is fitted on the validation split."""
    corruption_errors: Mapping[str, float] = field(default_factory=dict)
    """Mean error over five severities, by corruption of ModelNet40-C. "clean" is the error without a corruption, and
    "points" is not an error, but the number of points per set."""
    low_confidence: Mapping[str, float] = field(default_factory=dict)
    """Share of shapes with low confidence, by dataset."""
    calibration_error: Mapping[str, float] = field(default_factory=dict)
    """Expected calibration error by dataset: mean difference between probability and accuracy in 15 bins."""
    failures: tuple[Text, ...] = ()
    """Known weaknesses."""
    command: Text
    """The command that repeats the training."""
    terms: Text
    """Licences of code, weights and data."""


def list_pretrained() -> list[str]:
    """Return the names of the trained models of the package, sorted.

    Returns:
        Names for `load_model` and `create_model`. The part of a name after the dot is the tag.
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/card.toml"))


def trained_name(name: str, pretrained: bool | str | Path | None) -> str | Path:
    """Return the name or the run folder of the trained model for `create_model`; "" for an untrained model.

    Args:
        name: name of a model, or name of a trained model with its tag.
        pretrained: tag of the weights, or the folder of a run. True means "modelnet40-1024" if the model has this tag.
    """
    if not isinstance(pretrained, bool | str | Path | None):
        raise PointsetError(f"pretrained must be True, a tag or the folder of a run, got {quoted(pretrained)}")
    known = list_pretrained()
    if name in known and pretrained in (None, True):
        return name
    if pretrained in (None, False):
        return ""
    if isinstance(pretrained, str | Path):
        full = f"{name}.{pretrained}"
        return full if full in known or not Path(pretrained).is_dir() else Path(pretrained)
    tags = [full.removeprefix(f"{name}.") for full in known if full.startswith(f"{name}.")]
    if not tags:
        raise PointsetError(f"{quoted(name)} has no trained weights: trained models are {', '.join(known)}")
    usual = USUAL.partition(".")[2]
    return f"{name}.{usual if usual in tags else tags[0]}"


def find_run(path: str | Path) -> Path:
    """Return the folder of a run, from its path or the name of a trained model in the package."""
    folder, known = Path(path), list_pretrained()
    if folder.name == "network" and not folder.exists() and (folder.parent / "candidates.json").exists():
        remedy = "train again in another folder, with a larger --budget or a network by name"
        raise PointsetError(f"{folder.parent} has no network: its budget was too small to train one; {remedy}")
    if str(path) and (folder.exists() or len(folder.parts) > 1):
        return folder
    if str(path) in known:
        return FOLDER / path
    near = difflib.get_close_matches(str(path), known, n=3, cutoff=0.3) or known
    raise PointsetError(
        f"{quoted(path)} is not a run or a trained model of this package: give a folder that `pointset train` wrote, "
        f"or one of {', '.join(near)}"
    )


def pretrained_card(name: str) -> PretrainedCard:
    """Return the card of a trained model."""

    def parse(content: bytes) -> PretrainedCard:
        return msgspec.convert(tomllib.loads(content.decode()), PretrainedCard)

    return records.parse(find_run(name) / "card.toml", parse, "a trained model's card", REINSTALL)


def run_description(folder: Path) -> dict[str, Any]:
    """Return the content of run.json: the model and its training."""
    file, remedy = folder / "run.json", remedy_of(folder)
    custom = records.read_json(file, remedy, dict[str, Any]).get("model")
    if isinstance(custom, dict) and "class" in custom:
        raise PointsetError(
            f"{folder} holds a custom model ({custom['class']}): build it and load model.safetensors into it"
        )
    description: dict[str, Any] = records.read_json(file, remedy, RunDescription)
    check_once(f"in {file}, class", names := description["data"]["classes"])
    if len(names) != (count := description["model"]["classes"]):
        raise records.DamagedError(
            f"{file} does not hold what it should ({len(names)} names for {count} classes)", remedy
        )
    return description


def run_weights(folder: Path) -> "dict[str, Tensor]":
    """Return the weights of a finished run by parameter name; weights in the package have 16 bits."""
    from safetensors.torch import load as load_tensors  # not needed to list models

    begun = ("run.json", "selection.json")  # a model selection writes selection.json first
    if not any((folder / name).exists() for name in begun):
        raise PointsetError(f"{folder} is not a run (it has no run.json): give a folder that `pointset train` wrote")
    if not (folder / WEIGHTS).exists():
        raise PointsetError(f"{folder} is not finished: run the same training again to continue it")
    return records.parse(folder / WEIGHTS, load_tensors, "weights", remedy_of(folder))


def remedy_of(folder: Path) -> str:
    """Return the remedy that messages name for a run that is damaged or does not fit this installation."""
    return REINSTALL if folder.parent == FOLDER else f"move {folder} away and run the same again"
