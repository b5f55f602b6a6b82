"""The trained model of a command: the option `--model`, loading, and use on files."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter

import pointset
from pointset.commands.flags import Reading
from pointset.errors import PointsetError
from pointset.runs.progress import followed, write_line
from pointset.zoo.pretrained import USUAL

if TYPE_CHECKING:
    from pointset.data.catalogue.folders import ShapeFile
    from pointset.evaluation.shape_files import Failure

T = TypeVar("T")
LOW_CONFIDENCE = "low confidence"
"""This text is printed with a prediction of low confidence (see `pointset.zoo.out_of_distribution`)."""
MODEL_HELP = f"Folder of a run, or name of a trained model (see `pointset zoo --pretrained`); default: {USUAL}."
Model = Annotated[str | None, Parameter(name="--model", help=MODEL_HELP)]


FEW = 5
"""Up to this number of shapes, no progress bar is shown."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, its name and its description."""

    name: str
    """The value of --model: a folder, or the name of a trained model of the package."""
    network: Any
    """A `Classifier`, in evaluation mode."""

    @property
    def description(self) -> dict[str, Any]:
        """Content of run.json."""
        return self.network.description

    def on_device(self) -> Any:
        """Return the network, moved to an accelerator if there is one."""
        from pointset.training.processes import find_device

        return self.network.to(find_device("auto"))


def load_model(model: str | None) -> Trained:
    """Return the model that --model names, or the default model."""
    name = USUAL if model is None else model
    return Trained(name, pointset.load_model(name))


def require_network(trained: Trained, verb: str, *, of_ensemble: bool = False) -> None:
    """Raise a PointsetError unless the model is a network or, with `of_ensemble`, an ensemble that has a network."""
    from pointset.baselines.models import BASELINES

    model, inside = trained.description["model"], Path(trained.name) / "network"
    remedy = f"write --model {shlex.quote(str(inside))}" if inside.exists() else ""
    members = [member["name"] for member in model.get("members", ())]
    if members and not (of_ensemble and {*members} - {*BASELINES}):
        remedy = remedy or "train with a larger --budget, or a network by name"
        raise PointsetError(f"{trained.name} is an ensemble of classifiers, and only a network can be {verb}: {remedy}")
    if (name := str(model.get("name"))) in BASELINES:
        remedy = remedy or "train one by name"
        raise PointsetError(f"{trained.name} is {name}, and only networks can be {verb}: {remedy}")


def drawable(trained: Trained, *, of_ensemble: bool) -> Trained:
    """Return this model if it can be drawn, else the network that model selection saved in the same folder."""
    inside = Path(trained.name) / "network"
    try:
        require_network(trained, "drawn", of_ensemble=of_ensemble)
    except PointsetError:
        if not inside.exists():
            raise
        chosen = trained.description["model"]["name"]
        write_line(f"{trained.name} is {chosen}, which `classify` uses; the network in {inside} is drawn")
        return load_model(str(inside))
    return trained


def low_confidence_advice(trained: Trained, model: str | None, up: str) -> str:
    """Return possible causes of low confidence, with options to try. `model` is the value of --model."""
    prepared = trained.network
    causes = [f"they may be of none of the model's {len(prepared.classes):,} classes"]
    if prepared.preparation.normalize != "principal-axes":  # else neither axis nor pose matters
        other = "y" if prepared.preparation.up == "z" else "z"
        tries = f"try another upward axis {f'(such as --up {other})' if up == 'auto' else f'than {up}'}"
        if model is None:
            tries += ", or `classify --pose any` if their pose may differ"
        causes.insert(0, tries)
    return "; else ".join(causes)


def usual(model: str | None) -> list[str]:
    """Return a line with the name of the default model, if the user did not set --model."""
    return [f"model: {USUAL} (another: --model)"] if model is None else []


def run_over_files(
    of_files: Callable[..., "Iterable[T | Failure]"],
    trained: Trained,
    files: "Sequence[ShapeFile]",
    reading: Reading,
    what: str,
) -> "tuple[list[T], dict[str, str]]":
    """Return the results of a function such as `classify_files`, and the reason for each file that is left out."""
    from pointset.data.unusable import refuse_or_leave_out
    from pointset.evaluation.shape_files import Failure

    found = of_files(trained.on_device(), files, up=reading.up, remove_outliers=reading.remove_outliers)
    answered = list(followed(found, what, "shape", len(files), show=len(files) > FEW))
    results = [answer for answer in answered if not isinstance(answer, Failure)]
    failures = {answer.name: answer.reason for answer in answered if isinstance(answer, Failure)}
    if len(failures) == 1 and not results:
        raise PointsetError(*failures.values())
    refuse_or_leave_out(failures, len(results), reading.on_error, "files", "repair them")
    return results, failures


def left_out(failures: Mapping[str, str]) -> list[str]:
    """Return a line for each file that is left out."""
    return [f"left out {name}{reason.partition(name)[2] or f': {reason}'}" for name, reason in failures.items()]
