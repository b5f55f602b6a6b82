"""Trained models that come with the package: of each the folder of its run, with a card beside the weights.

A name is that of the model, a point, and what it was trained on: "isab16-pma.modelnet40-1024". Whatever takes the
folder of a run takes such a name too.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from pointset.configuration import FINITE, Checked, Count, Positive, Text
from pointset.errors import PointsetError, quoted
from pointset.runs import digests

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = Path(__file__).parent / "trained"
USUAL = "isab16-pma.modelnet40-1024"
"""What answers where a command is given no model."""
AGAIN = "install pointset again"


StrangerScore = Literal["energy", "distance"]
"""See `pointset.evaluation.strangers`."""
Finite = Annotated[float, Meta(ge=-FINITE, le=FINITE, description="a finite number")]


class Tested(NamedTuple):
    """A share of test shapes, with its 95 % interval."""

    accuracy: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Unlike(Checked):
    """What tells shapes unlike those of training; see `pointset.evaluation.strangers`."""

    score: StrangerScore
    threshold: Finite
    """95 % of held-out shapes are below it."""
    auroc: Mapping[str, float] = field(default_factory=dict)
    """By strangers: the chance that one of them has a larger score than a test shape."""


@dataclass(frozen=True, kw_only=True)
class PretrainedCard(Checked):
    """What is known of a trained model, beyond run.json: model, options, data, classes, recipe, commit, seed."""

    title: Text
    data: Text
    """The card of what it was trained on."""
    parameters: Count
    multiply_adds: Count
    """Of a set of 1,024 points."""
    accuracy: Mapping[str, Tested] = field(default_factory=dict)
    """By points of a test set, on the official test split."""
    temperature: Positive
    """By which logits are divided for probabilities; fitted on the validation split."""
    corruption_errors: Mapping[str, float] = field(default_factory=dict)
    """Mean over five severities, by corruption of ModelNet40-C; "clean" without any, on sets of so many `points`."""
    unlike: Unlike | None = None
    """What tells shapes unlike those of training, and how well it does."""
    failures: tuple[Text, ...] = ()
    """What it is known to get wrong."""
    command: Text
    """Trains it again."""
    terms: Text
    """Of code, weights and data."""


def list_pretrained() -> list[str]:
    """Names of the trained models that come with the package, sorted.

    Returns:
        Names for `load_run`; behind the point stands what `create_model` takes as `pretrained`.

    Example:
        >>> "isab16-pma.modelnet40-1024" in pointset.list_pretrained()
        True
    """
    return sorted(file.parent.name for file in FOLDER.glob("*/card.toml"))


def pretrained_folder(name: str) -> Path:
    """The folder of a trained model's run.

    Raises:
        PointsetError: no trained model has this name; those most like it are given.
    """
    if name in list_pretrained():
        return FOLDER / name
    raise PointsetError(f"no trained model is called {quoted(name)}: {_there_are(name)}")


def pretrained_card(name: str) -> PretrainedCard:
    """What is known of a trained model.

    Raises:
        PointsetError: no trained model has this name, or its card is damaged.
    """
    return digests.parse(pretrained_folder(name) / "card.toml", _parse_card, "a trained model's card", AGAIN)


def pretrained_run(name: str) -> dict[str, Any]:
    """Content of run.json: what the model is and how it was trained."""
    found = digests.read_json(pretrained_folder(name) / "run.json", AGAIN)
    assert isinstance(found, dict), "what is shipped has been tested"
    return found


def pretrained_weights(name: str) -> "dict[str, Tensor]":
    """Weights by name, as they are stored: in 16 bits."""
    from safetensors.torch import load as load_tensors  # not needed to list what there is

    return digests.parse(pretrained_folder(name) / "model.safetensors", load_tensors, "weights", AGAIN)


def _parse_card(content: bytes) -> PretrainedCard:
    found = tomllib.loads(content.decode())
    if isinstance(found.get("accuracy"), dict):
        found["accuracy"] = {size: Tested(*numbers) for size, numbers in found["accuracy"].items()}
    if isinstance(found.get("unlike"), dict):
        found["unlike"] = Unlike.from_dict(found["unlike"])
    return PretrainedCard.from_dict(found)


def _there_are(name: str) -> str:
    known = list_pretrained()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    return f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
