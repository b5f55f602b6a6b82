"""The trained model that a command works with: the same option, `--model`, everywhere."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

from pointset.errors import PointsetError
from pointset.zoo.pretrained import USUAL, list_pretrained

if TYPE_CHECKING:
    from pointset.data.catalogue.folders import ShapeFile
    from pointset.evaluation.files import Failure

T = TypeVar("T")
DO_NOT_TRUST = "do not trust this"
"""Printed beside a class that is more likely wrong than right."""
HELP = (
    "Folder of a run, file of `pointset pack`, hub:user/name of `pointset push`, or trained model of "
    f"`pointset zoo --pretrained`; default: {USUAL}."
)
Model = Annotated[str | None, Parameter(name="--model", help=HELP)]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model and what is known about it."""

    name: str
    """As the user gave it: a folder, or the name of a trained model in the package."""
    network: Any
    """A `Classifier` or a `Regressor`, in evaluation mode."""
    description: dict[str, Any]
    """Content of run.json."""


Learned = Literal["classes", "points", "numbers"]
KINDS: dict[Learned, tuple[str, str]] = {
    "classes": ("classes of whole shapes", "classify"),
    "points": ("labels of points", "segment"),
    "numbers": ("numbers", "predict"),
}
"""What a model predicts, and the command that does it."""


def load_model(model: str | None, *, learned: Learned | Sequence[Learned] | None = "classes") -> Trained:
    """The model that --model names, or the default one; `learned` is what it must predict, None takes all kinds."""
    from pointset.training.loading import load_run

    if model is None and USUAL not in list_pretrained():
        others = f", or one of {', '.join(list_pretrained())}" if list_pretrained() else ""
        raise PointsetError(
            f"{USUAL} is missing from the package: give --model with a folder that `pointset train` wrote{others}"
        )
    name = USUAL if model is None else model
    trained = Trained(name, *load_run(name))
    about = trained.description["model"]
    its: Learned = "points" if about.get("per_point") else "numbers" if about.get("targets") else "classes"
    wanted: Sequence[Learned] = [learned] if isinstance(learned, str) else learned or list(KINDS)
    if its not in wanted:
        (what, verb), others = KINDS[its], " or ".join(KINDS[kind][0] for kind in wanted)
        raise PointsetError(f"{name} predicts {what}, not {others}: use `pointset {verb} --model {name}`")
    return trained


def require_network(trained: Trained, verb: str) -> None:
    """Require one network: not a product of classifiers, nor a baseline."""
    from pointset.baselines.models import BASELINES

    model = trained.description["model"]
    if model.get("members"):
        inside = Path(trained.name) / "network"
        remedy = f"write --model {inside}" if inside.exists() else "train with a larger --budget, or a network by name"
        raise PointsetError(f"{trained.name} is a product of classifiers, and only a network can be {verb}: {remedy}")
    if str(model.get("name")) in BASELINES:
        raise PointsetError(f"{trained.name} is {model['name']}, and only networks can be {verb}: train one by name")


def settled_up(up: str, trained: Trained, files: "Sequence[ShapeFile]") -> str:
    """The value of --up, or the turn that is guessed for these files, with a line on standard error."""
    from pointset.evaluation.upright import guess_up

    if up != "guess":
        return up
    guess = guess_up(trained.network, trained.description["data"], files)
    print(guess, file=sys.stderr)
    return guess.turn


def say_usual(model: str | None) -> None:
    """Print the name of the default model, if --model was not given."""
    if model is None:
        print(f"model: {USUAL} (another: --model)")


def usable(
    answers: "Iterable[T | Failure]", on_error: str, what: str, count: int, *, show: bool
) -> "tuple[list[T], list[Failure]]":
    """Separate the results for `count` files from the failures, which are refused unless `on_error` is "skip"."""
    from pointset.data.unusable import refuse_or_leave_out
    from pointset.evaluation.files import Failure
    from pointset.runs.progress import followed

    answered = list(followed(answers, what, "shape", count, show=show))
    results = [answer for answer in answered if not isinstance(answer, Failure)]
    failures = [answer for answer in answered if isinstance(answer, Failure)]
    if len(failures) == 1 and not results:
        raise PointsetError(failures[0].reason)
    reasons = {failure.name: failure.reason for failure in failures}
    refuse_or_leave_out(reasons, len(results), on_error, "files", "repair them")
    return results, failures
