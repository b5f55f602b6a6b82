"""How a training uses its folder: it begins, resumes, loads a finished run, or extends it.

A finished run goes on where it is asked for more epochs and nothing else differs: a new schedule, with a new optimizer,
begins from its weights. The epochs keep their numbers, and with them their random numbers, so that the whole can be
repeated: run.json says under `continued_from` after how many epochs the new schedule began, and what it knew of the
part before.
"""

from typing import Any

from torch import nn

from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import plain
from pointset.runs.provenance import origin
from pointset.training.checkpoints import DECISIVE, RunFolder, describe_model
from pointset.training.contents import Checkpoint, Row, Weights
from pointset.training.recipe import Recipe

CONTINUED = "continued_from"


def describe(model: nn.Module, train: PointSets, recipe: Recipe, seed: int, processes: int = 1) -> dict[str, Any]:
    """Describe a run completely, so that it can be repeated."""
    return {
        "model": describe_model(model),
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": train.describe(),
        "processes": processes,
        **origin(),
    }


def enter(
    folder: RunFolder, description: dict[str, Any], optimizer: dict[str, Any]
) -> tuple[Weights, list[Row]] | None:
    """Claim a folder for a training; the caller has locked it.

    Args:
        folder: of the run.
        description: what run.json is to say.
        optimizer: the state of one that has made no step.

    Returns:
        The weights and the history of a run that is finished; None where there is something to train.

    Raises:
        PointsetError: the folder holds another run, or is damaged.
    """
    earlier = _earlier(folder, description)
    if earlier is not None:
        digests.write_json(folder.path / "run.json", description | {CONTINUED: earlier})
    folder.claim(description)
    if not folder.finished:
        return None
    weights, history = folder.weights(), folder.history()
    folder.tidy()
    if epochs_before(folder) != len(history):
        return weights, history
    # A kill between any two of these steps leads back here.
    kept = [weights if description["recipe"].get(name) is not None else None for name in ("patience", "average")]
    folder.save(Checkpoint(weights, optimizer, history, *kept))
    digests.remove(folder.path / "model.safetensors")
    return None


def _earlier(folder: RunFolder, description: dict[str, Any]) -> dict[str, Any] | None:
    """What to keep of a finished run's description, if the new one asks for more epochs and differs in nothing else."""
    if not folder.finished:
        return None
    mine, theirs = plain(description), folder.description()
    before, asked = theirs.get("recipe"), mine["recipe"]
    if not isinstance(before, dict) or not isinstance(before.get("epochs"), int) or asked["steps"] is not None:
        return None
    changed = theirs | {"recipe": before | {"epochs": asked["epochs"]}}
    if asked["epochs"] <= before["epochs"] or any(changed.get(part) != mine.get(part) for part in DECISIVE):
        return None
    return {"epochs": len(folder.history())} | {
        name: value for name, value in theirs.items() if name not in DECISIVE or name == "recipe"
    }


def epochs_before(folder: RunFolder) -> int:
    """Epochs of the run that this one goes on from; 0 for a run from the start.

    Raises:
        PointsetError: run.json is damaged.
    """
    earlier = folder.description().get(CONTINUED, {"epochs": 0})
    epochs = earlier.get("epochs") if isinstance(earlier, dict) else None
    if not isinstance(epochs, int):
        raise PointsetError(
            f"{folder.path / 'run.json'} does not say in {CONTINUED} how many epochs there were: restore it from a copy"
        )
    return epochs
