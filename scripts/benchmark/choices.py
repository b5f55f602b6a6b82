"""What another score or other weights cost: training steps and inference over those of softmax of dot scores.

    .venv/bin/python scripts/benchmark/choices.py
    .venv/bin/python scripts/benchmark/choices.py isab16-pma sab-pma --dims 128 --points 100 1000

All models take turns in one process, after a round that is not counted; ratios are of medians over the rounds. The
ratios of the processor's time stand beside those of the clock's: a machine that is busy with other work changes them
least. A training step is a forward and a backward pass, dropout included; freed memory is kept, as while `fit` runs.
Prints a Markdown table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import cyclopts
import torch
from blocks import CLASSES, infer, step
from tabulate import tabulate
from timing import interleaved

from pointset.runs.workers import torch_threads
from pointset.zoo.models import create_model

CHOICES: dict[str, dict[str, Any]] = {
    "dot, softmax": {},
    "bilinear": {"score": "bilinear"},
    "additive": {"score": "additive"},
    "sparsemax": {"weights": "sparsemax"},
    "entmax15": {"weights": "entmax15"},
    "csoftmax": {"weights": "csoftmax"},
    "csparsemax": {"weights": "csparsemax"},
}
"""Options of the models, the first being what the others are compared with."""


def compare(model: str, dim: int, points: int, batch_size: int, dropout: float, rounds: int) -> list[dict[str, Any]]:
    """Two rows for each choice, of a training step and of inference."""
    models = {
        title: create_model(model, CLASSES, dim=dim, dropout=dropout, **options) for title, options in CHOICES.items()
    }
    rows = torch.randn(batch_size, points, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(batch_size) % CLASSES
    kinds: tuple[tuple[str, Callable[..., None]], ...] = (("training step", step), ("inference", infer))
    found = []
    for kind, work in kinds:
        times = interleaved(
            {title: partial(work, one, rows, labels, "float32") for title, one in models.items()}, rounds
        )
        first = times[next(iter(CHOICES))]
        found += [
            {
                "model": model,
                "d": dim,
                "n": points,
                "work": kind,
                "choice": title,
                "ms": round(1000 * one.seconds, 1),
                "over the first": f"{one.seconds / first.seconds:.2f}",
                "processor's time": f"{one.processor / first.processor:.2f}",
            }
            for title, one in times.items()
        ]
    return found


app = cyclopts.App(default_parameter=cyclopts.Parameter(negative=(), consume_multiple=True))


@app.default
def bench(
    *models: str,
    dims: tuple[int, ...] = (128,),
    points: tuple[int, ...] = (100,),
    batch_size: int = 32,
    dropout: float = 0.5,
    rounds: int = 15,
    threads: int = 1,
) -> None:
    """Print a table, two rows for each choice, model, width and size of set.

    Args:
        models: that attend; isab16-pma when not given.
        dims: widths.
        points: points per set.
        batch_size: sets per step.
        dropout: of the models.
        rounds: timings of each; the median counts.
        threads: of torch.
    """
    with torch_threads(threads):
        for model in models or ("isab16-pma",):
            for dim in dims:
                rows = [row for size in points for row in compare(model, dim, size, batch_size, dropout, rounds)]
                print(tabulate(rows, headers="keys", tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    app()
