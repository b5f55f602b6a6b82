"""Learning curves of `pointset train` and its candidates: accuracy against the number of training shapes per class.

python scripts/experiments/learning_curves.py path/to/modelnet40_ply_hdf5 path/to/labeled_db  # results/learning_curves/

Models for ModelNet40 are tested on every second shape of its test split, and models for labeled_db on ten shapes per
class. Each line of results.csv is one fitted model, and the same command continues an interrupted run.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import pandas as pd
import torch
from saved import RESULTS, keep_row, kept_rows, study_table, write_tables
from support import OPTIONS, load
from torch import Tensor

from pointset import create_model, evaluate, fit, select_model
from pointset.data import PointSets, load_dataset
from pointset.training import transfer_recipe

NAME, CLASSICAL, TESTED = "learning_curves", "features+surface-svm", 10
SHAPES = {"labeled_db": ((1, 2, 5, 10), 2), "modelnet40": ((5, 10, 20), 1)}
"""Numbers of training shapes per class, and number of random draws, for each dataset."""
SCRATCH, PRODUCT, CHOICE = "network from scratch", f"network from scratch x {CLASSICAL}", "pointset train"
METHODS = ("features-svm", "surface-svm", CLASSICAL, SCRATCH, PRODUCT, "embedding-svm", CHOICE)
FIELDS = ("data", "draw", "shapes", "method", "accuracy", "seconds", "chosen")


def split(sets: PointSets, draw: int, shapes: int) -> tuple[PointSets, PointSets]:
    """Return `shapes` training shapes and `TESTED` test shapes per class. Smaller draws are subsets of larger draws."""
    generator = np.random.default_rng(draw)
    orders = [generator.permutation(np.flatnonzero(sets.labels == label)) for label in sets.labels.unique()]
    inside, outside = (
        torch.from_numpy(np.concatenate([rows[part] for rows in orders]))
        for part in (slice(shapes), slice(-TESTED, None))
    )
    return sets.subset(inside), sets.subset(outside)


def fitted(method: str, train: PointSets, seed: int) -> tuple[Any, str]:
    """Return a model that is fitted by a method, and the name of the selected candidate if the method selects one."""
    if method == CHOICE:
        choice = select_model(train, seed=seed, progress=False)
        return choice.fitted.model, choice.name
    name, options, recipe = method, None, None
    if method == SCRATCH:
        name, options, recipe = "dumlp16-max+dumlp16", OPTIONS, transfer_recipe(train)
    model = create_model(name, train.classes, options, seed=seed)
    return fit(model, train, recipe, seed=seed, progress=False).model, ""


def measure(name: str, sets: Callable[[int, int], tuple[PointSets, PointSets]]) -> None:
    """Fit and test the models for one dataset that results.csv does not have yet."""
    counts, draws = SHAPES[name]
    done = {(row["data"], int(row["draw"]), int(row["shapes"])) for row in kept_rows(NAME) if row["method"] == CHOICE}
    for draw, shapes in ((draw, shapes) for draw in range(draws) for shapes in counts):
        if (name, draw, shapes) in done:
            continue
        train, test = sets(draw, shapes)
        found: dict[str, Tensor] = {}
        for method in METHODS:
            began, chosen = time.process_time(), ""
            if method == PRODUCT:
                found[method] = found[SCRATCH] + found[CLASSICAL]
            else:
                model, chosen = fitted(method, train, draw)
                logits = torch.from_numpy(evaluate(model, test).logits)
                found[method] = (logits / model.temperature).log_softmax(dim=1)
            accuracy = float((found[method].argmax(dim=1) == test.labels).float().mean())
            numbers = f"{accuracy:.4f}", f"{time.process_time() - began:.1f}"
            keep_row(NAME, dict(zip(FIELDS, [name, draw, shapes, method, *numbers, chosen], strict=True)))


def table(name: str) -> str:
    """Return the table of one dataset: mean accuracies, with standard deviations if there are several draws."""
    rows = pd.read_csv(RESULTS / NAME / "results.csv").query("data == @name")
    found = 100 * rows.groupby(["method", "shapes"]).accuracy.agg(["mean", "std"])
    cells = {key: f"{mean:.1f}" + (f" ± {std:.1f}" if pd.notna(std) else "") for key, mean, std in found.itertuples()}
    counts, _ = SHAPES[name]
    lines = [[method, *(cells.get((method, count), "open") for count in counts)] for method in METHODS]
    return study_table(lines, [f"{name}, accuracy %", *(f"{count} per class" for count in counts)])


def learning_curves(modelnet40: Path, labeled_db: Path) -> None:
    """Fit and test all models, and write the tables."""
    own = load(labeled_db)
    measure("labeled_db", partial(split, own))
    options: dict[str, Any] = {"normalize": "center-standardize", "progress": False}
    train, test = (load_dataset(modelnet40, part, 1024, **options) for part in ("train", "test"))
    some = test.subset(torch.arange(0, len(test), 2))
    measure("modelnet40", lambda draw, shapes: (split(train, draw, shapes)[0], some))
    write_tables(NAME, [table(name) for name in SHAPES])


if __name__ == "__main__":
    cyclopts.run(learning_curves)
