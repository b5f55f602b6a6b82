"""One training for several sizes of tested sets: where the recipe draws the sizes, the tested one changes nothing."""

import json
from pathlib import Path
from typing import Any

from torch import nn

from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import read_description
from pointset.training.checkpoints import RunFolder
from pointset.training.entering import CONTINUED, describe
from pointset.training.recipe import Recipe


def any_size(recipe: Recipe) -> bool:
    """Whether a training is the same whatever the size of the evaluated sets."""
    return recipe.points is not None and recipe.patience is None


def take_over(twins: list[Path], folder: Path, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
    """Fill an empty folder with the first finished training that differs only in the size of its evaluated sets.

    Nothing happens where there is none, where the folder has begun a training of its own, or where the size matters:
    the recipe draws no sizes, or stops early. What validation told of sets of the other size is left out.

    Args:
        twins: folders of runs, finished or not.
        folder: of the run that is wanted; the caller owns it.
        model: untrained, of the zoo.
        train: its training sets.
        recipe: of the training.
        seed: of the training.

    Raises:
        PointsetError: a file of the finished training is damaged.
    """
    if not any_size(recipe) or (folder / "run.json").exists():
        return
    description = json.loads(json.dumps(describe(model, train, recipe, seed)))
    for twin in map(RunFolder, twins):
        if twin.finished and _whatever_the_size(read_description(twin.path / "run.json", "run")) == _whatever_the_size(
            description
        ):
            weights, history = twin.weights(), twin.history()
            digests.write_json(folder / "run.json", description)
            mine = RunFolder(folder)
            mine.write_history([{name: row[name] for name in row if "validation" not in name} for row in history])
            mine.finish(weights)
            return


def _whatever_the_size(description: dict[str, Any]) -> dict[str, Any]:
    """What decides the weights."""
    data = description.get("data")
    if not isinstance(data, dict):
        raise PointsetError("a run.json does not describe a run: restore it from a copy, or train again")
    parts = {name: description.get(name) for name in ("model", "recipe", "seed", "processes", CONTINUED)}
    return {**parts, "data": {name: value for name, value in data.items() if name != "points"}}
