"""Times that can be compared: every contestant in every round, in one process, and the median over the rounds."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple

import torch

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

    One round more is run first and not counted: it finds memory, kernels and plans.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            wait_for(torch.device(device))
            clock, busy = time.perf_counter(), time.process_time()
            work()
            wait_for(torch.device(device))
            found[name].append((time.perf_counter() - clock, time.process_time() - busy))
    return {name: Times(*map(median, zip(*rows[1:], strict=True))) for name, rows in found.items()}
