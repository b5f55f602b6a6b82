"""The use of a run's folder: a training begins, resumes, loads a finished run, extends it, or reuses another one.

A finished run is extended if more epochs are requested and nothing else differs: a new schedule, with a new optimizer,
begins from its weights. Epochs keep their numbers, and with them their random numbers. run.json says in
`continued_from` after how many epochs the new schedule began, and describes the part before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import plain
from pointset.runs.provenance import origin
from pointset.training.checkpoints import DECISIVE, Checkpoint, Row, RunFolder, Weights
from pointset.training.loading import describe_model
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
    """Claim a locked folder for a training.

    Args:
        folder: folder of the run.
        description: the future content of run.json.
        optimizer: state of an optimizer that has made no step.

    Returns:
        The weights and the history of a finished run; None if there is something to train.

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
    """What to keep of a finished run's description, if the new one has more epochs and differs in nothing else."""
    if not folder.finished:
        return None
    mine, theirs = plain(description), folder.description()
    before, requested = theirs.get("recipe"), mine["recipe"]
    if not isinstance(before, dict) or not isinstance(before.get("epochs"), int) or requested["steps"] is not None:
        return None
    changed = theirs | {"recipe": before | {"epochs": requested["epochs"]}}
    if requested["epochs"] <= before["epochs"] or any(changed.get(key) != mine.get(key) for key in DECISIVE):
        return None
    return {"epochs": len(folder.history())} | {
        name: value for name, value in theirs.items() if name not in DECISIVE or name == "recipe"
    }


def epochs_before(folder: RunFolder) -> int:
    """Epochs of the run that this one extends; 0 for a run from the start.

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


def any_size(recipe: Recipe) -> bool:
    """True if a training does not depend on the size of the evaluated sets."""
    return recipe.train_points is not None and recipe.patience is None


def reuse(others: Sequence[Path], folder: Path, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
    """Fill an empty folder with a finished training that differs only in the size of its evaluated sets, if any.

    Do nothing if the folder has begun a training of its own, or if the size matters: the recipe draws no sizes, or
    stops early. Validation results of the other size are left out.

    Args:
        others: folders of runs, finished or not.
        folder: folder of the run; the caller owns it.
        model: the untrained model.
        train: its training sets.
        recipe: the recipe of the training.
        seed: the seed of the training.

    Raises:
        PointsetError: a file of the finished training is damaged.
    """
    if not any_size(recipe) or (folder / "run.json").exists():
        return
    description = plain(describe(model, train, recipe, seed))
    for other in map(RunFolder, others):
        if other.finished and _at_any_size(other.description()) == _at_any_size(description):
            weights, history = other.weights(), other.history()
            digests.write_json(folder / "run.json", description)
            run = RunFolder(folder)
            run.write_history([{name: row[name] for name in row if "validation" not in name} for row in history])
            run.finish(weights)
            return


def _at_any_size(description: dict[str, Any]) -> dict[str, Any]:
    """What affects the weights."""
    data = description.get("data")
    if not isinstance(data, dict):
        raise PointsetError("a run.json does not describe a run: restore it from a copy, or train again")
    decisive = {name: description.get(name) for name in ("model", "recipe", "seed", "processes", CONTINUED)}
    return {**decisive, "data": {name: value for name, value in data.items() if name != "points"}}
