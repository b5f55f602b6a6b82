"""Sets of several sizes: batches of neighbours in size against batches in random order.

    .venv/bin/python scripts/benchmark/ragged.py
    .venv/bin/python scripts/benchmark/ragged.py --model isab16-pma isab16-max rff-max --smallest 100 --largest 300

The sizes are log-uniform from the smallest to the largest, the points normal, the weights untrained. Training is an
epoch of forward and backward passes, dropout included, over batches that are padded to their largest set; inference is
`predict`, against batches in the order of the sets. Both ways take turns in one process, after a round that is not
counted; the numbers are medians over the rounds, of the clock and of the processor's time of all threads, which other
work on the machine changes less. Prints a Markdown table.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cyclopts
import torch
from tabulate import tabulate
from timing import WORKS, interleaved
from torch import Tensor, nn

import pointset
from pointset.data.batches import batches_of_rows
from pointset.data.ragged import pad_sets
from pointset.runs.workers import torch_threads
from pointset.zoo.predicting import padded_batches, predict

CLASSES = 40

app = cyclopts.App(default_parameter=cyclopts.Parameter(consume_multiple=True))


@app.default
def bench(
    *,
    model: tuple[str, ...] = ("isab16-pma",),
    dim: int = 128,
    form: str = "reference",
    sets: int = 256,
    batch: int = 32,
    smallest: int = 32,
    largest: int = 4096,
    rounds: int = 5,
    threads: int = 1,
    seed: int = 0,
) -> None:
    """Print a table, two rows per model.

    Args:
        model: names of the zoo.
        dim: width of their layers.
        form: of their attention blocks.
        sets: in the data.
        batch: sets in a batch.
        smallest: points of a set, at least.
        largest: points of a set, at most.
        rounds: times each way is measured.
        threads: of torch.
        seed: of the sizes and the points.
    """
    generator = torch.Generator().manual_seed(seed)
    shares = torch.rand(sets, generator=generator, dtype=torch.float64).tolist()
    sizes = [round(smallest * math.exp(share * math.log(largest / smallest))) for share in shares]
    clouds = [torch.randn(size, 3, generator=generator) for size in sizes]
    orders = {
        "random": list(torch.randperm(sets, generator=generator).split(batch)),
        "sorted": batches_of_rows(torch.tensor(sizes), batch, generator),
    }
    batches = {name: [pad_sets([clouds[row] for row in rows]) for rows in order] for name, order in orders.items()}
    with torch_threads(threads):
        rows = [row for name in model for row in compare(name, clouds, batches, batch, rounds, dim=dim, form=form)]
    padded = {name: sum(points[..., 0].numel() for points, _ in parts) / sum(sizes) for name, parts in batches.items()}
    print(f"{sets} sets of {min(sizes)} to {max(sizes)} points, {batch} a batch; with padding", end=" ")
    print(f"{padded['random']:.2f} times as many points, sorted {padded['sorted']:.2f}. Threads: {threads}.\n")
    print(tabulate(rows, headers="keys", tablefmt="pipe"))


def compare(
    name: str,
    clouds: Sequence[Tensor],
    batches: dict[str, list[tuple[Tensor, Tensor | None]]],
    batch: int,
    rounds: int,
    **options: Any,
) -> list[dict[str, Any]]:
    """The rows of one model: an epoch of training, and inference."""
    model = pointset.create_model(name, CLASSES, **options)

    def train(parts: list[tuple[Tensor, Tensor | None]]) -> None:
        for points, mask in parts:
            WORKS["training step"](model, partial(model, points, mask))

    def padded(model: nn.Module) -> None:
        with torch.inference_mode():
            for points, mask in padded_batches(clouds, batch):
                model.eval()(points, mask)

    ways: dict[str, dict[str, Callable[[], object]]] = {
        "training": {way: partial(train, parts) for way, parts in batches.items()},
        "inference": {"random": partial(padded, model), "sorted": lambda: predict(model, padded_batches(clouds))},
    }
    rows = []
    for title, calls in ways.items():
        times = interleaved(calls, rounds)
        row: dict[str, Any] = {"model": name, "work": title}
        for place, what in enumerate(("s", "processor s")):
            row |= {f"{way} {what}": round(times[way][place], 2) for way in calls}
        rows.append(row | {"times as fast": round(times["random"][1] / times["sorted"][1], 2)})
    return rows


if __name__ == "__main__":
    app()
