"""Sets of several sizes in one batch: `model.packed` against padding with a mask.

    .venv/bin/python scripts/benchmark/ragged.py
    .venv/bin/python scripts/benchmark/ragged.py --model isab16-pma isab16-max rff-max --smallest 100 --largest 300

The sizes are log-uniform from the smallest to the largest, the points normal, the weights untrained. Both ways take
turns in one process, after a round that is not counted; the numbers are medians over the rounds. The processor's time
of all threads stands beside the clock's: a machine that is busy with other work changes it least. A training step is a
forward and a backward pass, dropout included. Prints a Markdown table and JSON.
"""

import json
import math
from functools import partial
from typing import Any

import cyclopts
import torch
from tabulate import tabulate
from timing import WORKS, Times, interleaved
from torch import Tensor

import pointset
from pointset.data.ragged import pad_sets
from pointset.runs.workers import torch_threads
from pointset.zoo.classifiers import PackedClassifier, SetClassifier

CLASSES = 40

app = cyclopts.App(default_parameter=cyclopts.Parameter(consume_multiple=True))


@app.default
def bench(
    *,
    model: tuple[str, ...] = ("isab16-pma",),
    dim: int = 128,
    form: str = "reference",
    sets: int = 32,
    smallest: int = 32,
    largest: int = 4096,
    rounds: int = 9,
    threads: int = 1,
    seed: int = 0,
) -> None:
    """Print a table, two rows per model.

    Args:
        model: names of the zoo.
        dim: width of their layers.
        form: of their attention blocks.
        sets: in the batch.
        smallest: points of a set, at least.
        largest: points of a set, at most.
        rounds: times each way is measured.
        threads: of torch.
        seed: of the sizes and the points.
    """
    clouds = make_clouds(log_uniform(sets, smallest, largest, seed), seed)
    with torch_threads(threads):
        rows = [row for name in model for row in compare(name, clouds, rounds, dim=dim, form=form)]
    real, padded = sum(map(len, clouds)), sets * max(map(len, clouds))
    print(f"{sets} sets of {min(map(len, clouds))} to {max(map(len, clouds))} points: {real:,} points,", end=" ")
    print(f"{padded:,} with padding, {padded / real:.2f} times as many. Threads: {threads}. Width: {dim}.\n")
    print(tabulate(rows, headers="keys", tablefmt="pipe"), end="\n\n")
    print(json.dumps({"sizes": [len(cloud) for cloud in clouds], "rounds": rounds, "rows": rows}))


def log_uniform(sets: int, smallest: int, largest: int, seed: int) -> list[int]:
    """Sizes whose logarithms are uniform."""
    shares = torch.rand(sets, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return [round(smallest * math.exp(share * math.log(largest / smallest))) for share in shares.tolist()]


def make_clouds(sizes: list[int], seed: int) -> list[Tensor]:
    """Sets of points from a normal distribution."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, 3, generator=generator) for size in sizes]


def compare(name: str, clouds: list[Tensor], rounds: int, **options: Any) -> list[dict[str, Any]]:
    """The rows of one model: a training step, and inference."""
    model = pointset.create_model(name, CLASSES, **options)
    assert isinstance(model, SetClassifier | PackedClassifier)
    points, mask = pad_sets(clouds)
    rows, batch = torch.cat(clouds), torch.arange(len(clouds)).repeat_interleave(torch.tensor([*map(len, clouds)]))
    ways = {"padded": lambda: model(points, mask), "packed": lambda: model.packed(rows, batch, len(clouds))}
    found = []
    for title, work in WORKS.items():
        times = interleaved({way: partial(work, model, call) for way, call in ways.items()}, rounds)
        found.append({"model": name, "work": title, **columns(times)})
    return found


def columns(times: dict[str, Times]) -> dict[str, float]:
    """Milliseconds of both ways, and how many times as fast packed sets are."""
    found: dict[str, float] = {}
    for place, what in enumerate(("ms", "processor ms")):
        padded, packed = (1000 * times[way][place] for way in ("padded", "packed"))
        found |= {f"padded {what}": round(padded, 1), f"packed {what}": round(packed, 1)}
        found["times as fast" if what == "ms" else "by processor time"] = round(padded / packed, 2)
    return found


if __name__ == "__main__":
    app()
