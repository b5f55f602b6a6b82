"""Experiments included in the package. Imports must stay light, because `pointset --help` reads one experiment."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pointset.arguments import closest_spelling
from pointset.configuration import check
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, quoted
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

TASKS_FOLDER = Path(__file__).parent
CHECKOUT = TASKS_FOLDER.parent.parent / "scripts" / "experiments"
FOLDERS = (TASKS_FOLDER / "experiments", CHECKOUT / "tasks")
"""Folders of experiments in an installed package, and in a checkout."""


def bundled_experiment(name: str) -> Path:
    """Return the file of an included experiment.

    Args:
        name: name of a task or an experiment: "quick" is the experiment of the quickstart, and "own" that of `pointset
            compare --data FOLDER`.

    Returns:
        The path, for `pointset.tasks.read_experiment`.

    Raises:
        PointsetError: if no included experiment has this name.
    """
    check("name", name, str)
    files = {file.stem: file for folder in FOLDERS for file in sorted(folder.glob("*.toml"))}
    for beside in ("quick", "own"):
        files.setdefault(beside, CHECKOUT / f"{beside}.toml")
    if name not in files:
        near = closest_spelling(name, list(files))
        raise PointsetError(f"no task is called {quoted(name)}: did you mean {near}? Bundled tasks: {', '.join(files)}")
    return files[name]


class Options(NamedTuple):
    """Options of the sets, of the model and of the training."""

    sets: DataOptions
    model: ModelOptions
    recipe: Recipe

    def changed(self, sets: Mapping[str, Any], model: Mapping[str, Any], recipe: Mapping[str, Any]) -> "Options":
        """Return the options with changed fields.

        The sizes in `train_points` are limited to that of the test sets, and a change of `epochs` removes `min_steps`,
        unless `recipe` changes these fields too.
        """
        data, training = self.sets.changed(sets), self.recipe.changed(recipe)
        if "epochs" in recipe:
            training = replace(training, min_steps=recipe.get("min_steps"))
        if training.train_points is not None and "train_points" not in recipe:
            training = training.changed({"train_points": [min(size, data.points) for size in training.train_points]})
        return Options(data, self.model.changed(model), training)
