"""Trained models in the package: for each, the folder of its run, with a card beside the weights.

A name consists of the model, a dot, and the training data: "isab16-pma.modelnet40-1024". Every function that takes the
folder of a run also takes such a name.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pointset.configuration import Checked, Count, Positive, Text, check
from pointset.errors import PointsetError, quoted
from pointset.runs import records
from pointset.zoo.descriptions import RunDescription, check_run

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = Path(__file__).parent / "trained"
USUAL = "isab16-pma.modelnet40-1024"
"""The default model of the commands."""
ANY_POSE = "dumlp16-max+dumlp16.modelnet40-1024-any"
"""The default model for shapes that are not upright."""
REINSTALL = "install pointset again"


class TestedAccuracy(NamedTuple):
    """An accuracy on test shapes, with its 95 % interval."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PretrainedCard(Checked):
    """Facts about a trained model beyond run.json (model, options, data, classes, recipe, commit, seed)."""

    title: Text
    data: Text
    """Name of the card of its training dataset."""
    parameters: Count
    multiply_adds: Count
    """Multiply-adds for a set of 1,024 points."""
    accuracy: Mapping[str, TestedAccuracy] = field(default_factory=dict)
    """Accuracy on the official test split, by points per set."""
    deciding: Count | None = None
    """Median size of the exact support, of 1,024 points; None if every point has a weight."""
    temperature: Positive
    """Logits are divided by this before the softmax, for shapes like those of training; fitted on the validation
    split."""
    corruption_errors: Mapping[str, float] = field(default_factory=dict)
    """Mean over five severities, by corruption of ModelNet40-C; "clean" is without any, `points` the size of sets."""
    low_confidence: Mapping[str, float] = field(default_factory=dict)
    """By set of shapes: share with low confidence."""
    calibration_error: Mapping[str, float] = field(default_factory=dict)
    """By set of shapes: mean difference of probability and accuracy, in 15 bins of probability."""
    failures: tuple[Text, ...] = ()
    """Known weaknesses."""
    command: Text
    """The command that repeats the training."""
    terms: Text
    """Licences of code, weights and data."""


def list_pretrained() -> list[str]:
    """Names of the trained models in the package, sorted.

    Returns:
        Names for `load_model` and `create_model`; the part after the dot is their tag.
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/card.toml"))


def pretrained_name(name: str, pretrained: bool | str | None) -> str:
    """Return the full name of the trained model that `create_model` is asked for; "" if it is to be untrained.

    Args:
        name: name of a model, or of a trained model with its tag.
        pretrained: tag of the weights; True takes "modelnet40-1024" if the model has it.
    """
    check("pretrained", pretrained, bool | str | None)
    if name in list_pretrained() and isinstance(pretrained, bool | None):
        if pretrained is False:
            raise PointsetError(f"{name} is a trained model: leave out pretrained=False, or its tag after the dot")
        return name
    if not isinstance(pretrained, bool):
        return "" if pretrained is None else f"{name}.{pretrained}"
    if not pretrained:
        return ""
    tags = [full.removeprefix(f"{name}.") for full in list_pretrained() if full.startswith(f"{name}.")]
    if not tags:
        raise PointsetError(f"{quoted(name)} has no trained weights: there are {', '.join(list_pretrained())}")
    usual = USUAL.partition(".")[2]
    return f"{name}.{usual if usual in tags else tags[0]}"


def pretrained_folder(name: str) -> Path:
    """Return the folder of a trained model's run."""
    if name in list_pretrained():
        return FOLDER / name
    known = list_pretrained()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    there = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
    raise PointsetError(f"no trained model is called {quoted(name)}: {there}")


def pretrained_card(name: str) -> PretrainedCard:
    """Return the card of a trained model."""

    def parse(content: bytes) -> PretrainedCard:
        return msgspec.convert(tomllib.loads(content.decode()), PretrainedCard)

    return records.parse(pretrained_folder(name) / "card.toml", parse, "a trained model's card", REINSTALL)


def pretrained_run(name: str) -> dict[str, Any]:
    """Return the content of run.json: the model and its training."""
    file = pretrained_folder(name) / "run.json"
    description: dict[str, Any] = records.read_json(file, REINSTALL, RunDescription)
    check_run(description, file)
    return description


def pretrained_weights(name: str) -> "dict[str, Tensor]":
    """Return the weights by name, in 16 bits."""
    from safetensors.torch import load as load_tensors  # not needed to list what there is

    return records.parse(pretrained_folder(name) / "model.safetensors", load_tensors, "weights", REINSTALL)
