"""Training steps and inference of our models against other formulations of the same architecture, on this machine.

    .venv/bin/python scripts/benchmark/blocks.py isab16-pma --dims 128 256 --points 100 1000 5000 --threads 2

Columns "released" to "torch" are times over ours, medians of interleaved rounds in one process: the released
formulation of the Set Transformer, the same with scaled_dot_product_attention, torch-geometric's blocks, and blocks of
torch.nn.MultiheadAttention (see rivals.py).

    .venv/bin/python scripts/benchmark/blocks.py isab16-pma sab-pma --against choices --dims 128 --points 100 1000

What another score or other weights cost, over softmax of dot scores.

With `--floor` the ratios are those of the processor's time, which other work on the machine changes least. It adds the
share of matrix products in our time, and what the first ratio would be if everything else took no time at all.
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
"""Of the square matrices whose product gives the machine's rate."""
PRODUCTS = {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"}
Contestants = dict[str, nn.Module]
OURS = "pointset"
SAME = ("released", "sdpa")
"""Rivals with our weights."""
CHOICES: dict[str, dict[str, Any]] = {
    "bilinear": {"score": "bilinear"},
    "additive": {"score": "additive"},
    **{name: {"weights": name} for name in ("sparsemax", "entmax15", "csoftmax", "csparsemax")},
}
"""Options of our models that are compared with none, softmax of dot scores."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is timed."""

    against: Literal["rivals", "choices"] = "rivals"
    """Other formulations, or our own with other scores and weights."""
    heads: int = 4
    """Attention heads."""
    batch_size: int = 32
    """Sets per step."""
    rounds: int = 9
    """Timings of each; the median counts."""
    device: str = "cpu"
    """cpu, or cuda."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """float32, or bfloat16 for autocast."""
    floor: bool = False
    """Ratios of the processor's time, the share of matrix products, and the most that they allow."""


def contest(setting: Setting, name: str, dim: int, points: int) -> list[dict[str, Any]]:
    """Two rows, of a training step (forward and backward pass, no optimizer) and of inference.

    Each has our milliseconds, the others' times over ours, the operations of our matrix products, and the share that
    they make of the rate of one large float32 product, timed in the same rounds. The training step has the others'
    memory over ours too.

    Raises:
        PointsetError: the model has no rivals.
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
    """The share of matrix products in the processor's time of a piece of work."""
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
    raise PointsetError(f"the benchmark has no rivals for {name}: give isab16-pma, another isab<m>-pma, or sab-pma")


def check_equal(contestants: Contestants, tolerance: float = 1e-4) -> None:
    """Raise a PointsetError unless the rivals with our weights give our logits: else the ratios would mean nothing."""
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
            raise PointsetError(f"the logits of {name} are off ours by {off:.1g}: it is not the same function")


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
    """Print a table, two rows per model, width and size of set.

    Args:
        models: isab<m>-pma or sab-pma, and with `--against choices` any that attend; isab16-pma when not given.
        dims: widths.
        points: points per set.
        threads: of torch; all cores when not given.
        out: file for the rows, as JSON, with the command and the machine; written again after each size.
        setting: what is timed.
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
