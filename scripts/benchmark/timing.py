"""Times and memory of models. Times are medians over rounds, each of which calls all functions in one process."""

import copy
import time
from collections.abc import Callable, Mapping
from itertools import accumulate
from random import Random
from statistics import median
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile


class Times(NamedTuple):
    """Medians of wall time and CPU time over the rounds."""

    seconds: float
    processor: float
    """CPU seconds of all threads together. Other work on the machine has the smallest effect on them."""


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu") -> dict[str, Times]:
    """Time functions in interleaved calls, so that other work on the machine affects all of them alike.

    Each round has a random order, from a fixed seed, because a function that follows a large one has none of its data
    in the cache. One more round is run first and not counted: it allocates memory and loads kernels.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    order, wait = Random(0), torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(rounds + 1):
        for name, work in order.sample([*works.items()], len(works)):
            wait()
            clock, busy = time.perf_counter(), time.process_time()
            work()
            wait()
            found[name].append((time.perf_counter() - clock, time.process_time() - busy))
    return {name: Times(*map(median, zip(*rows[1:], strict=True))) for name, rows in found.items()}


def training_step(model: nn.Module, call: Callable[[], Tensor]) -> None:
    """Run forward and backward pass, without the optimizer; `call` returns the logits [B, classes]."""
    model.train()
    model.zero_grad()
    logits = call()
    labels = torch.arange(len(logits), device=logits.device) % logits.shape[1]
    F.cross_entropy(logits.float(), labels).backward()


def inference(model: nn.Module, call: Callable[[], Tensor]) -> None:
    """Run the forward pass without gradients."""
    model.eval()
    with torch.no_grad():
        call()


WORKS = {"training step": training_step, "inference": inference}


def step_memory(model: nn.Module, clouds: Tensor) -> int:
    """Return the peak bytes of a training step on clouds [B, n, 3], with gradients; on a CPU also with parameters."""
    model = copy.deepcopy(model)  # its batch statistics and gradients are its own
    if clouds.is_cuda:
        torch.cuda.reset_peak_memory_stats(clouds.device)
        before = torch.cuda.memory_allocated(clouds.device)
        training_step(model, lambda: model(clouds))
        return torch.cuda.max_memory_allocated(clouds.device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        training_step(model, lambda: model(clouds))
    profiler: Any = profiled.profiler
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return max(accumulate(changes)) + sum(parameter.nbytes for parameter in model.parameters())
