"""Times that can be compared: every contestant in every round, in one process, and the median over the rounds."""

import time
from collections.abc import Callable, Mapping
from random import Random
from statistics import median
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pointset.evaluation.costs import wait_for


class Times(NamedTuple):
    """Medians over the rounds."""

    seconds: float
    processor: float
    """Seconds of all threads together: other work on the machine changes it least."""


def interleaved(
    works: Mapping[str, Callable[[], object]], rounds: int, device: torch.device | str = "cpu"
) -> dict[str, Times]:
    """Time each piece of work; they take turns, so that a busy moment of the machine hits all alike.

    Each round has an order of its own, drawn with one seed: whoever comes after a large piece of work finds an empty
    cache. One round more is run first and not counted: it finds memory, kernels and plans.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    order = Random(0)
    for _ in range(rounds + 1):
        for name, work in order.sample([*works.items()], len(works)):
            wait_for(torch.device(device))
            clock, busy = time.perf_counter(), time.process_time()
            work()
            wait_for(torch.device(device))
            found[name].append((time.perf_counter() - clock, time.process_time() - busy))
    return {name: Times(*map(median, zip(*rows[1:], strict=True))) for name, rows in found.items()}


def training_step(model: nn.Module, call: Callable[[], Tensor]) -> None:
    """Forward and backward pass, no optimizer; `call` gives the logits [B, classes]."""
    model.train()
    model.zero_grad()
    logits = call()
    labels = torch.arange(len(logits), device=logits.device) % logits.shape[1]
    F.cross_entropy(logits.float(), labels).backward()


def inference(model: nn.Module, call: Callable[[], Tensor]) -> None:
    """Forward pass without gradients."""
    model.eval()
    with torch.no_grad():
        call()


WORKS = {"training step": training_step, "inference": inference}
