"""Neighbourhoods for shapes in any pose: which numbers, of shapes turned to their principal axes.

python scripts/experiments/pose_neighbourhoods.py ../shared/data/labeled_db ../shared/data/modelnet9_obj

Of folders without test shapes, a fifth of each class is held out. Test shapes are turned at random, each in `TURNS`
ways; in the rows "aligned" they lie as those of training. About 40 core-seconds a fit on one thread.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import torch
from cyclopts import App

import pointset
from pointset.configuration import Neighbourhoods
from pointset.data.augment import rotation_matrices
from pointset.training.fine_tuning import NETWORK_MODEL, transfer_recipe
from pointset.zoo.models import create_for
from pointset.zoo.options import ModelOptions

TURNS = 4
NETWORK: dict[str, Any] = {"dim": 64, "norm": "batch", "head_dim": 256, "head_norm": "batch", "dropout": 0.3}
NETWORK["pooled_dropout"] = 0.0
KINDS: tuple[Neighbourhoods, ...] = ("none", "oriented", "invariant", "all")
ROWS: list[tuple[str, Neighbourhoods]] = [
    *(("any", kind) for kind in KINDS),
    ("aligned", "none"),
    ("aligned", "oriented"),
    ("aligned", "all"),
]
app = App(name="pose_neighbourhoods.py", help=__doc__, help_format="plaintext")


def turned_at_random(sets: pointset.PointSets, seed: int) -> pointset.PointSets:
    """The same shapes, each in a pose of its own."""
    pool = sets.source_pool
    turns = rotation_matrices(torch.randn(len(pool), 4, generator=torch.Generator().manual_seed(seed))).numpy()
    return sets.of_pool(dataclasses.replace(pool, points=pool.points @ turns.transpose(0, 2, 1), checksums=()))


def split(folder: Path, pose: str, seed: int) -> tuple[pointset.PointSets, pointset.PointSets]:
    """Training and test shapes."""
    train = pointset.load_dataset(folder, pose=pose, progress=False)
    if not any(folder.glob("*/test")):
        return train.split_validation(0.2, seed)
    return train, pointset.load_dataset(folder, "test", pose=pose, progress=False)


@app.default
def measure(*folders: Path, seeds: tuple[int, ...] = (0, 1)) -> None:
    """Fit a network for each folder, seed, pose and kind of numbers."""
    for seed, (pose, kind), folder in itertools.product(seeds, ROWS, folders):
        train, test = split(folder, pose, seed)
        tests = [turned_at_random(test, turn) for turn in range(TURNS)] if pose == "any" else [test]
        model = create_for(train, NETWORK_MODEL, ModelOptions(neighbourhoods=kind, **NETWORK), seed=seed)
        pointset.fit(model, train, transfer_recipe(train), seed=seed, progress=False)
        found = [pointset.evaluate(model, each) for each in tests]
        accuracy, loss = (sum(getattr(one, name) for one in found) / len(found) for name in ("accuracy", "loss"))
        print(f"| {folder.name} | {seed} | {pose} | {kind} | {100 * accuracy:.1f} | {loss:.3f} |", flush=True)


if __name__ == "__main__":
    app()
