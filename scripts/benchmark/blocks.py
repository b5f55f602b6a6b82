"""Measure the time of a training step and of inference of our models and of other implementations, on this machine.

    .venv/bin/python scripts/benchmark/blocks.py isab16-pma --dims 128 256 --points 100 1000 5000 --threads 2

The column "ms" has the time of our model. The columns "released" to "torch" have the time of another implementation of
the architecture (see rivals.py), divided by ours. All times are medians over interleaved rounds in one process.

    .venv/bin/python scripts/benchmark/blocks.py isab16-pma sab-pma --against choices --dims 128 --points 100 1000

With `--against choices`, the columns have the time of our model with another score or another function for the weights,
divided by that with the softmax of dot scores.

With `--floor`, the ratios are those of CPU times, on which other work on the machine has the smallest effect. Two
columns are added: "products" is the share of matrix products in our CPU time, and "ceiling" is what the first ratio
would be if our model needed no time for anything else.
"""

import copy
import itertools
import json
import platform
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import torch
from cyclopts import Parameter
from rivals import fused, geometric_aggregation, geometric_model, rewritten, split_along_batch, torch_model
from tabulate import tabulate
from timing import WORKS, interleaved, step_memory
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import profile
from torch.utils.flop_counter import FlopCounterMode

from pointset import PointsetError, create_model

CLASSES = 40
SIDE = 2048
"""Number of rows of the square matrices whose product measures the rate of the machine."""
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"}
Contestants = dict[str, nn.Module]
OURS = "pointset"
SAME = ("released", "sdpa")
"""Other implementations that have our weights."""
CHOICES: dict[str, dict[str, Any]] = {
    "bilinear": {"score": "bilinear"},
    "additive": {"score": "additive"},
    **{name: {"weights": name} for name in ("sparsemax", "entmax15", "csoftmax", "csparsemax")},
}
"""Options of our models that are compared with the default, the softmax of dot scores."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Settings of a measurement."""

    against: Literal["rivals", "choices"] = "rivals"
    """Compare with other implementations ("rivals"), or with other scores and weights functions ("choices")."""
    heads: int = 4
    """Number of attention heads."""
    batch_size: int = 32
    """Number of sets per step."""
    rounds: int = 9
    """Number of timings, of which the median is printed."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """float32, or bfloat16 for autocast."""
    floor: bool = False
    """Print ratios of CPU times, the share of matrix products, and the ratio if all other work took no time."""


def contest(setting: Setting, name: str, dim: int, points: int) -> list[dict[str, Any]]:
    """Return a row for a training step (forward and backward pass, no optimizer) and a row for inference.

    A row has our time in milliseconds, the times of the others divided by ours, and the operations of our matrix
    products. It also has the number of these operations per second, divided by the rate of one large float32 product
    that is timed in the same rounds. The row for training has the memory of the others, divided by ours, too.

    Raises:
        PointsetError: there is no other implementation of the model.
    """
    contestants = _contestants(setting, name, dim)
    check_equal(contestants)
    sets = torch.randn(setting.batch_size, points, 3, generator=torch.Generator().manual_seed(0)).to(setting.device)
    rows = []
    for kind, work in WORKS.items():
        works: dict[str, Callable[[], object]] = {
            label: partial(work, model, partial(_logits, model, sets, setting.precision))
            for label, model in contestants.items()
        }
        rows.append({"model": name, "d": dim, "n": points, "work": kind, **_measured(setting, works)})
    memory = {label: step_memory(model, sets) for label, model in contestants.items()}
    ours = memory.pop(OURS)
    rows[0]["memory MB"] = round(ours / 1e6, 1)
    rows[0] |= {f"memory of {label}": round(theirs / ours, 2) for label, theirs in memory.items() if label in SAME}
    return rows


def _logits(model: nn.Module, sets: Tensor, precision: str) -> Tensor:
    with torch.autocast(sets.device.type, getattr(torch, precision)) if precision != "float32" else nullcontext():
        return model(sets)


def _measured(setting: Setting, works: dict[str, Callable[[], object]]) -> dict[str, Any]:
    square = torch.ones(SIDE, SIDE, device=setting.device)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # it does not know fused kernels
        works[OURS]()
    counted = counter.get_total_flops()
    times = interleaved(works | {"product": lambda: square @ square}, setting.rounds, setting.device)
    ours, product = times.pop(OURS), times.pop("product")
    ratios = {
        label: round(theirs.processor / ours.processor if setting.floor else theirs.seconds / ours.seconds, 2)
        for label, theirs in times.items()
    }
    row: dict[str, Any] = {"ms": round(1000 * ours.seconds, 1), **ratios, "GFLOP": round(counted / 1e9, 2)}
    row["share of product rate"] = float(f"{counted / ours.seconds / (2 * SIDE**3 / product.seconds):.3g}")
    if setting.floor:
        share = products_share(works[OURS])
        row |= {"products": round(share, 2), "ceiling": round(next(iter(ratios.values())) / share, 1)}
    return row


def products_share(work: Callable[[], object]) -> float:
    """Return the share of matrix products in the CPU time of a function call."""
    with profile() as profiled:
        work()
    times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    return sum(time for key, time in times.items() if key.rstrip("_") in PRODUCTS) / sum(times.values())


def _contestants(setting: Setting, name: str, dim: int) -> Contestants:
    ours = create_model(name, CLASSES, dim=dim, heads=setting.heads)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if setting.against == "rivals":
            others = _rivals(name, ours, dim, setting.heads)
        else:
            make = partial(create_model, name, CLASSES, dim=dim, heads=setting.heads)
            others = {title: make(**options) for title, options in CHOICES.items()}
    return {label: model.to(setting.device) for label, model in {OURS: ours, **others}.items()}


def _rivals(name: str, ours: nn.Module, dim: int, heads: int) -> Contestants:
    if name.startswith(("isab", "sab-")) and name.endswith("-pma"):
        found = {
            "released": rewritten(copy.deepcopy(ours), split_along_batch),
            "sdpa": rewritten(copy.deepcopy(ours), fused),
            "torch-geometric": geometric_model(name, dim, heads, CLASSES),
            "torch": torch_model(name, dim, heads, CLASSES),
        }
        return found | ({"aggregation": geometric_aggregation(dim, heads, CLASSES)} if name == "sab-pma" else {})
    raise PointsetError(f"{name} has no other implementation here: give isab16-pma, another isab<m>-pma, or sab-pma")


def check_equal(contestants: Contestants, tolerance: float = 1e-4) -> None:
    """Raise a PointsetError if an implementation with our weights does not compute our logits."""
    device = next(contestants[OURS].parameters()).device
    points = torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(1)).to(device)
    logits = {}
    for name in (OURS, *SAME):
        if name in contestants:
            with torch.inference_mode():
                logits[name] = contestants[name].eval()(points)
    for name in [name for name in SAME if name in logits]:
        off = float((logits[name] - logits[OURS]).abs().max())
        if not off < tolerance:
            raise PointsetError(f"the logits of {name} differ from ours by {off:.1g}, so it is not the same function")


app = cyclopts.App(default_parameter=Parameter(negative=(), consume_multiple=True))


@app.default
def bench(
    *models: str,
    dims: tuple[int, ...] = (128, 256),
    points: tuple[int, ...] = (100, 1000, 5000),
    threads: int | None = None,
    out: Path | None = None,
    setting: Annotated[Setting, Parameter(name="*")] = Setting(),
) -> None:
    """Print a table with two rows per model, width and number of points.

    Args:
        models: isab<m>-pma or sab-pma; with `--against choices`, any model with attention. Default: isab16-pma.
        dims: widths.
        points: numbers of points per set.
        threads: number of threads of torch; default: all cores.
        out: JSON file for the rows, the command and the machine. It is written after each number of points.
        setting: settings of the measurement.
    """
    torch.set_num_threads(threads or torch.get_num_threads())
    machine = {"processor": platform.processor(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    rows: list[dict[str, Any]] = []
    for name, dim, count in itertools.product(models or ("isab16-pma",), dims, points):
        print(f"{name}, d = {dim}, n = {count}", file=sys.stderr)
        rows += contest(setting, name, dim, count)
        if out is not None:
            out.write_text(json.dumps({"rows": rows, "machine": machine, "command": sys.argv}, indent=2))
    print(tabulate(rows, headers="keys", tablefmt="pipe"))


if __name__ == "__main__":
    app()
