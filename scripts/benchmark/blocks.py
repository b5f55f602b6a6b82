"""Training steps and inference of our models against other formulations of the same architecture, on this machine.

    .venv/bin/python scripts/benchmark/blocks.py isab16-pma --dims 128 256 --points 100 1000 5000 --threads 2

Columns "released" to "torch" are times over ours, medians of interleaved rounds in one process: the released
formulation of the Set Transformer, the same with scaled_dot_product_attention, torch-geometric's blocks, and blocks of
torch.nn.MultiheadAttention (see rivals.py).

    .venv/bin/python scripts/benchmark/blocks.py choices isab16-pma sab-pma --dims 128 --points 100 1000

What another score or other weights cost, over softmax of dot scores. The ratios of the processor's time stand beside
those of the clock's: a machine that is busy with other work changes them least.
"""

import copy
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import cyclopts
import torch
import torch.nn.functional as F
from rivals import fused, geometric_aggregation, geometric_model, rewritten, split_along_batch, torch_model
from tabulate import tabulate
from timing import interleaved
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.evaluation.costs import flops, step_memory
from pointset.nn.layers import in_evaluation_mode
from pointset.runs.atomic import write_json
from pointset.runs.provenance import command, origin
from pointset.runs.workers import torch_threads
from pointset.training.recipe import Precision
from pointset.zoo.models import create_model

CLASSES = 40
SIDE = 2048
"""Of the square matrices whose product gives the machine's rate."""
Kind = Literal["training step", "inference"]
Contestants = dict[str, nn.Module]
SAME = ("released", "sdpa")
"""Rivals with our weights."""


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


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is timed."""

    model: str = "isab16-pma"
    dim: int = 128
    heads: int = 4
    points: int = 1000
    batch_size: int = 32
    rounds: int = 9
    device: str = "cpu"
    precision: Precision = "float32"


def contest(setting: Setting) -> list[dict[str, Any]]:
    """Two rows, of a training step (forward and backward pass, no optimizer) and of inference.

    Each has our milliseconds, the others' times over ours, the operations of our matrix products, and the share that
    they make of the rate of one large float32 product, timed in the same rounds. The training step has the others'
    memory over ours too.

    Raises:
        PointsetError: the model has no rivals.
    """
    contestants = _contestants(setting)
    check_equal(contestants)
    rows = [_row(setting, kind, works) for kind, works in _works(setting, contestants).items()]
    memory = {name: step_memory(model, setting.points, setting.batch_size) for name, model in contestants.items()}
    ours = memory["pointset"]
    rows[0]["memory_mb"] = round(ours / 1e6, 1)
    rows[0]["memory_ratios"] = {name: round(held / ours, 2) for name, held in memory.items() if name != "pointset"}
    return rows


def _works(setting: Setting, contestants: Contestants) -> dict[Kind, dict[str, Callable[[], object]]]:
    """A training step and inference of each contestant, on the same sets."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(setting.batch_size, setting.points, 3, generator=generator).to(setting.device)
    labels = (torch.arange(setting.batch_size) % CLASSES).to(setting.device)
    kinds: dict[Kind, Callable[..., None]] = {"training step": step, "inference": infer}
    return {
        kind: {name: partial(work, model, points, labels, setting.precision) for name, model in contestants.items()}
        for kind, work in kinds.items()
    }


def _row(setting: Setting, kind: Kind, works: dict[str, Callable[[], object]]) -> dict[str, Any]:
    square = torch.ones(SIDE, SIDE, device=setting.device)
    counted = flops(works["pointset"])
    times = interleaved(works | {"product": lambda: square @ square}, setting.rounds, setting.device)
    seconds = {name: found.seconds for name, found in times.items()}
    ours, product = seconds.pop("pointset"), seconds.pop("product")
    return {
        "model": setting.model,
        "dim": setting.dim,
        "points": setting.points,
        "kind": kind,
        "ms": round(1000 * ours, 1),
        "ratios": {name: round(theirs / ours, 2) for name, theirs in seconds.items()},
        "gflop": round(counted / 1e9, 2),
        "share": float(f"{counted / ours / (2 * SIDE**3 / product):.3g}"),
    }


def step(model: nn.Module, points: Tensor, labels: Tensor, precision: Precision) -> None:
    """Forward and backward pass."""
    model.train()
    model.zero_grad()
    with _autocast(precision, points.device):
        logits = model(points)
    F.cross_entropy(logits.float(), labels).backward()


def infer(model: nn.Module, points: Tensor, labels: Tensor, precision: Precision) -> None:
    """Forward pass without gradients."""
    model.eval()
    with torch.no_grad(), _autocast(precision, points.device):
        model(points)


def _autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    return nullcontext() if precision == "float32" else torch.autocast(device.type, getattr(torch, precision))


def _contestants(setting: Setting) -> Contestants:
    name, dim, heads = setting.model, setting.dim, setting.heads
    ours = create_model(name, CLASSES, dim=dim, heads=heads)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = {"pointset": ours, **_rivals(name, ours, dim, heads)}
    return {label: model.to(setting.device) for label, model in found.items()}


def _rivals(name: str, ours: nn.Module, dim: int, heads: int) -> Contestants:
    if name.startswith(("isab", "sab-")) and name.endswith("-pma"):
        found = {
            "released": rewritten(copy.deepcopy(ours), split_along_batch),
            "sdpa": rewritten(copy.deepcopy(ours), fused),
            "torch-geometric": geometric_model(name, dim, heads, CLASSES),
            "torch": torch_model(name, dim, heads, CLASSES),
        }
        return found | ({"aggregation": geometric_aggregation(dim, heads, CLASSES)} if name == "sab-pma" else {})
    raise PointsetError(f"the benchmark has no rivals for {name}: give isab16-pma, another isab<m>-pma, or sab-pma")


def check_equal(contestants: Contestants, tolerance: float = 1e-4) -> None:
    """Raise a PointsetError unless the rivals with our weights give our logits: else the ratios would mean nothing."""
    device = next(contestants["pointset"].parameters()).device
    points = torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(1)).to(device)
    with torch.inference_mode():
        logits = {}
        for name in ("pointset", *SAME):
            if name in contestants:
                with in_evaluation_mode(contestants[name]):
                    logits[name] = contestants[name](points)
    for name in [name for name in SAME if name in logits]:
        off = float((logits[name] - logits["pointset"]).abs().max())
        if not off < tolerance:
            raise PointsetError(f"the logits of {name} are off ours by {off:.1g}: it is not the same function")


RIVALS = ("released", "sdpa", "torch-geometric", "torch", "aggregation")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """One line per row; times of others as multiples of ours."""
    rivals = [name for name in RIVALS if any(name in row["ratios"] for row in rows)]
    return tabulate([_line(row, rivals) for row in rows], headers="keys", tablefmt="pipe", disable_numparse=True)


def _line(row: dict[str, Any], rivals: Sequence[str]) -> dict[str, str]:
    shown = {name: f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "" for name in rivals}
    memory = next((held for name, held in row.get("memory_ratios", {}).items() if name in SAME), None)
    return {
        "model": row["model"],
        "d": str(row["dim"]),
        "n": str(row["points"]),
        "work": row["kind"],
        "ms": f"{row['ms']:.1f}",
        **shown,
        "GFLOP": f"{row['gflop']:.1f}",
        "share of product rate": f"{row['share']:.0%}",
        "memory of theirs": "" if memory is None else f"{memory:.2f}",
    }


app = cyclopts.App(default_parameter=cyclopts.Parameter(negative=(), consume_multiple=True))


@app.default
def bench(
    *models: str,
    dims: tuple[int, ...] = (128, 256),
    points: tuple[int, ...] = (100, 1000, 5000),
    heads: int = 4,
    batch_size: int = 32,
    rounds: int = 9,
    threads: int | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print a table, two rows per model, width and size of set.

    Args:
        models: isab<m>-pma, sab-pma, rff-max, rffp-max or none-dumlp<k>; isab16-pma when not given.
        dims: widths.
        points: points per set.
        heads: attention heads.
        batch_size: sets per step.
        rounds: timings of each; the median counts.
        threads: of torch; all cores when not given.
        device: cpu, or cuda.
        precision: float32, or bfloat16 for autocast.
        out: file for the rows, as JSON, with the versions and the machine; written again after each size.
        as_json: print JSON.
    """
    with torch_threads(threads or torch.get_num_threads()):
        result: dict[str, Any] = {"rows": [], **origin(), "command": command()}
        for name, dim, count in itertools.product(models or ("isab16-pma",), dims, points):
            print(f"{name}, d = {dim}, n = {count}", file=sys.stderr)
            setting = Setting(model=name, dim=dim, points=count, heads=heads, batch_size=batch_size, rounds=rounds)
            result["rows"] += contest(replace(setting, device=device, precision=precision))
            if out is not None:
                write_json(out, result)
    print(json.dumps(result, indent=2) if as_json else markdown(result["rows"]))


def compare(setting: Setting, dropout: float) -> list[dict[str, Any]]:
    """Two rows for each choice, of a training step and of inference."""
    models: Contestants = {
        title: create_model(setting.model, CLASSES, dim=setting.dim, dropout=dropout, **options)
        for title, options in CHOICES.items()
    }
    rows = []
    for kind, works in _works(setting, models).items():
        times = interleaved(works, setting.rounds)
        first = times[next(iter(CHOICES))]
        rows += [
            {
                "model": setting.model,
                "d": setting.dim,
                "n": setting.points,
                "work": kind,
                "choice": title,
                "ms": round(1000 * time.seconds, 1),
                "over the first": f"{time.seconds / first.seconds:.2f}",
                "processor's time": f"{time.processor / first.processor:.2f}",
            }
            for title, time in times.items()
        ]
    return rows


@app.command
def choices(
    *models: str,
    dims: tuple[int, ...] = (128,),
    points: tuple[int, ...] = (100,),
    batch_size: int = 32,
    dropout: float = 0.5,
    rounds: int = 15,
    threads: int = 1,
) -> None:
    """Print a table of other scores and weights, two rows for each choice, model, width and size of set.

    Args:
        models: that attend; isab16-pma when not given.
        dims, points, batch_size, rounds, threads: as without `choices`.
        dropout: of the models.
    """
    with torch_threads(threads):
        for name, dim in itertools.product(models or ("isab16-pma",), dims):
            sized = partial(Setting, model=name, dim=dim, batch_size=batch_size, rounds=rounds)
            rows = [row for size in points for row in compare(sized(points=size), dropout)]
            print(tabulate(rows, headers="keys", tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    app()
