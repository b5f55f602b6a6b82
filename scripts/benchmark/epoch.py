"""Measure the time of a training epoch, and the share of the training steps in it.

    .venv/bin/python scripts/benchmark/epoch.py --data path/to/modelnet40_ply_hdf5 --points 100 1000 --threads 2

`fit` trains for `--steps` steps, which includes loading, sampling, augmentation, clipping and bookkeeping. For
comparison, the same number of steps is made with batches that are already in memory: forward pass, backward pass,
clipping and optimizer. The two measurements alternate in one process, and the table has their medians.
"""

import statistics
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import cyclopts
import torch
import torch.nn.functional as F
from tabulate import tabulate
from torch import Tensor
from torch.utils.data import DataLoader

import pointset
from pointset import Recipe
from pointset.data import PointSets, collate


def whole(name: str, train: PointSets, recipe: Recipe) -> float:
    """Return the seconds that `fit` takes for the steps of the recipe."""
    model = pointset.create_model(name, len(train.classes), dim=256)
    return pointset.fit(model, train, recipe, progress=False).seconds


def bare(name: str, drawn: Sequence[tuple[Tensor, ...]], classes: int, recipe: Recipe) -> float:
    """Return the seconds of the same number of steps with batches in memory."""
    model = pointset.create_model(name, classes, dim=256).train()
    optimizer = torch.optim.AdamW(model.parameters(), recipe.learning_rate)
    start = time.perf_counter()
    for points, mask, labels in drawn:
        optimizer.zero_grad()
        F.cross_entropy(model(points, mask), labels, label_smoothing=recipe.label_smoothing).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm or float("inf"))
        optimizer.step()
    return time.perf_counter() - start


def measure(name: str, data: str, size: int, steps: int, rounds: int) -> dict[str, Any]:
    """Return a row of the table."""
    train, recipe = pointset.load_dataset(data, "train", points=size), Recipe(steps=steps)
    drawn = list(islice(DataLoader(train, recipe.batch_size, shuffle=True, collate_fn=collate), steps))
    classes = len(train.classes)
    times = [(whole(name, train, recipe), bare(name, drawn, classes, recipe)) for _ in range(rounds + 1)]
    in_all, in_steps = (statistics.median(column) for column in zip(*times[1:], strict=True))
    per_epoch = len(train) / recipe.batch_size
    return {
        "model": name,
        "points": size,
        "ms a step, all included": round(1000 * in_all / steps, 1),
        "seconds per epoch": round(in_all / steps * per_epoch, 1),
        "share of the steps %": round(100 * in_steps / in_all, 1),
    }


def main(
    *,
    data: str,
    model: str = "isab16-pma",
    points: tuple[int, ...] = (100, 1000),
    steps: int = 20,
    rounds: int = 3,
    threads: int = 1,
) -> None:
    """Print a table with a row per number of points.

    Args:
        data: name of a data card, or a folder.
        model: name from `pointset zoo`; its width is 256.
        points: numbers of points per set.
        steps: number of steps in each timing.
        rounds: number of timings, of which the median is printed. One more is made first and not counted.
        threads: number of threads of torch.
    """
    torch.set_num_threads(threads)
    rows = [measure(model, data, size, steps, rounds) for size in points]
    print(tabulate(rows, headers="keys", tablefmt="pipe"))


if __name__ == "__main__":
    cyclopts.App(default_command=main, default_parameter=cyclopts.Parameter(consume_multiple=True))()
