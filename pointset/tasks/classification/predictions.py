"""The files of a classifier's run: predictions.npz, and robustness.json where it is asked for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from torch import nn

from pointset.comparison.gathering import Comparison
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation
from pointset.evaluation.corruptions import MODELNET40_C
from pointset.evaluation.robustness import SIZES, Robustness, accuracy_by_size, robustness
from pointset.runs.atomic import read_json, write_atomically, write_json

ROBUSTNESS = "robustness.json"


def save_predictions(evaluation: Evaluation, folder: Path) -> None:
    """Keep logits and labels beside the run."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, logits=evaluation.logits, labels=evaluation.labels)

    write_atomically(folder / "predictions.npz", write)


def load_predictions(folder: Path, classes: Sequence[str] = ()) -> Evaluation:
    """Read what `save_predictions` wrote.

    Raises:
        PointsetError: the file is missing or damaged.
    """
    path = folder / "predictions.npz"
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            return Evaluation(file["logits"], file["labels"], list(classes))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise PointsetError(f"{path} is damaged ({error}): delete its folder and run the same again") from error


def predictions_of(comparison: Comparison, label: str, seed: int, points: int | None = None) -> Evaluation:
    """The predictions behind a finished run of a comparison of classifiers; see `Comparison.run`."""
    run = comparison.run(label, seed, points)
    classes = read_json(comparison.folder / f"sets-n{run.size}.json")["test_sets"]["classes"]
    return load_predictions(run.folder, classes)


def write_robustness(folder: Path, model: nn.Module, test: PointSets, points: int) -> None:
    """Test a model on corrupted and on smaller sets, and write down what came of it."""
    sizes = sorted({*(size for size in SIZES if size < points), points})
    found = robustness(model, test, [*MODELNET40_C, "drop_global", "drop_local"])
    content = {"by_size": accuracy_by_size(model, test, sizes), **found.as_dict()}
    write_json(folder / ROBUSTNESS, content)


def robustness_rows(folder: Path, place: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The error of a run on each changed test set that it was tested on; none if it was not.

    `test` is a corruption and `level` its severity, 0 for the clean sets; or `test` is "points", `level` how many.
    """
    if not (folder / ROBUSTNESS).exists():
        return []
    found = read_json(folder / ROBUSTNESS)
    errors = [("clean", 0, found["clean_error"])]
    errors += [(name, int(level), error) for name, by in found["errors"].items() for level, error in by.items()]
    errors += [("points", int(size), 1.0 - accuracy) for size, accuracy in found["by_size"].items()]
    return [{**place, "test": test, "level": level, "error": error} for test, level, error in errors]


def robustness_of(folders: Mapping[int, Path]) -> dict[int, Robustness]:
    """Errors on corrupted test sets, for each seed that was tested so."""
    files = {seed: folder / ROBUSTNESS for seed, folder in folders.items()}
    return {seed: Robustness.from_dict(read_json(file)) for seed, file in files.items() if file.exists()}


def sizes_of(folders: Mapping[int, Path]) -> list[dict[int, float]]:
    """Accuracies by size of the test sets, for each seed that was tested so."""
    files = [folder / ROBUSTNESS for folder in folders.values()]
    found = [read_json(file)["by_size"] for file in files if file.exists()]
    return [{int(size): accuracy for size, accuracy in one.items()} for one in found]
