"""The files of a run of a classifier: predictions.npz, and robustness.json if robustness is tested."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from torch import nn

from pointset.data.dataset import PointSets
from pointset.evaluation import Evaluation
from pointset.evaluation.corruptions import MODELNET40_C
from pointset.evaluation.robustness import SIZES, Robustness, accuracy_by_size, robustness
from pointset.runs import digests
from pointset.tasks.shapes import load_arrays, save_arrays


@dataclass(frozen=True)
class Tested(Robustness):
    """The content of robustness.json."""

    by_size: dict[int, float]
    """Accuracy by size of the test sets."""


PREDICTIONS = "predictions.npz"
ROBUSTNESS = "robustness.json"


def save_predictions(evaluation: Evaluation, folder: Path) -> None:
    """Save logits, labels, and the names of shapes and classes in the folder of a run."""
    arrays = {name: getattr(evaluation, name) for name in ("logits", "labels", "names", "classes")}
    save_arrays(folder / PREDICTIONS, **arrays)


def load_predictions(folder: Path) -> Evaluation:
    """Read what `save_predictions` wrote."""
    return load_arrays(folder / PREDICTIONS, _as_evaluation)


def _as_evaluation(arrays: Mapping[str, np.ndarray]) -> Evaluation:
    logits, labels = arrays["logits"], arrays["labels"]
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or logits.dtype.kind != "f" or labels.dtype.kind != "i":
        raise ValueError(f"logits {logits.dtype} {logits.shape} and labels {labels.dtype} {labels.shape}")
    return Evaluation(logits, labels, arrays["classes"].tolist(), arrays["names"].tolist())


def class_rows(folder: Path, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The accuracy of a run on each class, and the number of test shapes of the class, as rows of a table."""
    run = load_predictions(folder)
    counts = dict(zip(run.classes, np.bincount(run.labels, minlength=len(run.classes)).tolist(), strict=True))
    return [
        {**columns, "class": name, "shapes": counts[name], "accuracy": accuracy}
        for name, accuracy in run.per_class.items()
    ]


def write_robustness(folder: Path, model: nn.Module, test: PointSets, points: int) -> None:
    """Test a model on corrupted and on smaller sets, and save the results."""
    sizes = sorted({*(size for size in SIZES if size < points), points})
    tested = asdict(robustness(model, test, [*MODELNET40_C, "drop_global", "drop_local"]))
    digests.write_json(folder / ROBUSTNESS, {"by_size": accuracy_by_size(model, test, sizes), **tested})


def robustness_rows(folder: Path, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The errors of a run on corrupted and smaller test sets, as rows of a table; empty if it was not tested on them.

    Column `test` is a corruption and `level` its severity (0 for clean sets); or `test` is "points" and `level` the
    number of points.
    """
    rows = []
    for tested in robustness_of({0: folder}).values():
        errors = [("clean", 0, tested.clean_error)]
        errors += [
            (name, level, error) for name, by_level in tested.errors.items() for level, error in by_level.items()
        ]
        errors += [("points", size, 1.0 - accuracy) for size, accuracy in tested.by_size.items()]
        rows += [{**columns, "test": test, "level": level, "error": error} for test, level, error in errors]
    return rows


def robustness_of(folders: Mapping[int, Path]) -> dict[int, Tested]:
    """Results on corrupted and on smaller test sets, for each seed that was tested on them."""
    files = {seed: folder / ROBUSTNESS for seed, folder in folders.items() if (folder / ROBUSTNESS).exists()}
    remedy = "delete {} and run the same command again to test the model again"
    return {
        seed: digests.parse(file, _parse_robustness, "the robustness of a model", remedy.format(file))
        for seed, file in files.items()
    }


def _parse_robustness(content: bytes) -> Tested:
    return msgspec.convert(json.loads(content), Tested, strict=False)  # keys of JSON are texts
