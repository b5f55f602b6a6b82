"""The trained model that a command works with: the same option, `--model`, everywhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pointset.errors import PointsetError, quoted
from pointset.zoo.pretrained import USUAL, PretrainedCard, list_pretrained, pretrained_card

if TYPE_CHECKING:
    from torch import nn

    from pointset.evaluation.strangers import Detector

UNLIKE = "unlike the shapes it was trained on"
HELP = f"Folder of a run, or a trained model from `pointset zoo --pretrained`; {USUAL} when not given."
Model = Annotated[str | None, Parameter(name="--model", help=HELP)]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model and what is known of it."""

    name: str
    """As it was given: a folder, or the name of a model that comes with the package."""
    network: "nn.Module"
    """In evaluation mode."""
    description: dict[str, Any]
    """Content of run.json."""
    card: PretrainedCard | None
    """Of a model that comes with the package."""
    detector: "Detector | None"
    """What tells shapes unlike those of training, where the card says it."""

    @property
    def temperature(self) -> float:
        """By which logits are divided for probabilities: the card's, or 1."""
        return 1.0 if self.card is None else self.card.temperature


def load_model(model: str | None) -> Trained:
    """The model that --model names, or the usual one.

    Raises:
        PointsetError: there is no such model.
    """
    from pointset.evaluation.strangers import load_detector
    from pointset.training.checkpoints import find_run, load_run
    from pointset.zoo.pretrained import FOLDER

    if model is None and USUAL not in list_pretrained():
        others = f"or one of {', '.join(list_pretrained())}" if list_pretrained() else "none comes with this package"
        raise PointsetError(f"{USUAL} is not there: give --model and a folder that `pointset train` wrote, {others}")
    name = USUAL if model is None else model
    network, description = load_run(name)
    folder = find_run(name)
    card = pretrained_card(folder.name) if folder.parent == FOLDER else None
    detector = load_detector(card.unlike, folder) if card and card.unlike else None
    return Trained(name, network, description, card, detector)


def say_usual(model: str | None) -> None:
    """Print which model it is where --model did not say so."""
    if model is None:
        print(f"model: {USUAL} (another: --model)")


def refuse_old_spelling(tokens: Sequence[str]) -> None:
    """Raise a PointsetError that says --model for how the commands took a run before they all had it."""
    command, first = (*tokens, "", "")[:2]
    for number, token in enumerate(tokens):
        name, _, value = token.partition("=")
        if command == "attend" and name == "--checkpoint":
            run = value or "".join(tokens[number + 1 : number + 2])
            raise PointsetError(f"attend takes a run as evaluate does: write --model {run} for --checkpoint {run}")
    if command in ("evaluate", "export") and first and not first.startswith("-"):
        raise PointsetError(f"{command} takes a run by an option: pointset {command} --model {quoted(first)[1:-1]}")
