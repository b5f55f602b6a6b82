"""Costs of a model: multiply-adds (counted) and latency (timed)."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pointset.data.local_features import SIZE
from pointset.nn.layers import in_evaluation_mode
from pointset.runs.workers import torch_threads


@dataclass(frozen=True)
class Cost:
    """Costs of one model at one set size."""

    multiply_adds: int
    """Multiply-adds in the matrix products of one forward pass over one set."""
    latency_ms: float
    """Milliseconds of one forward pass over one set: the minimum over repeats, because other work on the machine only
    increases times."""


def measure_costs(models: Sequence[nn.Module], points: int, *, repeats: int = 9, threads: int = 1) -> list[Cost]:
    """Measure the costs of models. Timings alternate between models, so that other work affects all models.

    Args:
        models: classifiers of the package.
        points: number of points of a set.
        repeats: number of timed passes of each model; the fastest one counts.
        threads: number of CPU threads.

    Returns:
        Multiply-adds and latency of each model for one set.
    """
    with torch_threads(threads):
        rounds = [[latency_ms(model, points) for model in models] for _ in range(repeats)]
        fastest = [round(min(times), 3) for times in zip(*rounds, strict=True)]
        return [Cost(multiply_adds(model, points), least) for model, least in zip(models, fastest, strict=True)]


def multiply_adds(model: nn.Module, points: int) -> int:
    """Count the multiply-adds of matrix products and distances between rows in a forward pass over one set.

    torch's counter counts them for a copy of the model on the CPU. The device does not change the count. If the
    model has local features, the multiply-adds of neighbour distances and moments are added.
    """
    model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    clouds = clouds_for(model, 1, points)
    with torch.no_grad():
        products = flops(lambda: model(clouds)) // 2
    neighbours = 0 if getattr(model, "local_features", "none") == "none" else points * (3 * points + 9 * SIZE)
    return products + neighbours


def flops(work: Callable[[], object]) -> int:
    """Count the floating-point operations of the matrix products in `work()`, two per multiply-add."""

    def distances(first: Sequence[int], second: Sequence[int], *_: Any, **__: Any) -> int:
        """Count the operations of |a - b| between rows a [..., n, d] and b [..., m, d]."""
        return 2 * math.prod(first) * second[-2]

    def added(_: Sequence[int], first: Sequence[int], second: Sequence[int], *__: Any, **___: Any) -> int:
        """Count the operations of first [..., n, d] times second [..., d, m], a product that is added in place."""
        return 2 * math.prod(first) * second[-1]

    aten = torch.ops.aten
    unknown = {
        aten._cdist_forward: distances,  # for few rows
        aten._euclidean_dist: distances,  # for many rows
        aten.addmm_: added,
        aten.baddbmm_: added,
    }
    with _unfused(), FlopCounterMode(display=False, custom_mapping=unknown) as counter:
        work()
    return counter.get_total_flops()


@contextmanager
def _unfused() -> Iterator[None]:
    """Compute attention and recurrent layers by matrix products, as the counter does not know the fused CPU kernels."""
    attention, recurrent = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled
    torch.backends.mha.set_fastpath_enabled(False)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(attention)
        torch.backends.mkldnn.enabled = recurrent


def latency_ms(model: nn.Module, points: int) -> float:
    """Return the milliseconds of one forward pass over one set, after one pass as warm-up."""
    clouds = clouds_for(model, 1, points)
    with torch.inference_mode(), in_evaluation_mode(model):
        model(clouds)
        wait_for(clouds.device)
        start = time.perf_counter()
        model(clouds)
        wait_for(clouds.device)
        return 1000.0 * (time.perf_counter() - start)


def clouds_for(model: nn.Module, sets: int, points: int) -> Tensor:
    """Return random clouds [sets, points, inputs], the same every time, on the model's device."""
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    return torch.randn(sets, points, getattr(model, "inputs", 3), generator=generator).to(device)


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
