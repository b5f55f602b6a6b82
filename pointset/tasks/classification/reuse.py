"""One training for several set sizes: a run is filled with another one's weights if the size does not affect them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import plain
from pointset.training.checkpoints import CONTINUED, RunFolder, describe
from pointset.training.recipe import Recipe


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
