"""Times that can be compared: every contestant in every round, in one process, and the median over the rounds."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

from pointset.evaluation.costs import wait_for

Work = Callable[[], object]


def interleaved(works: Mapping[str, Work], rounds: int, device: torch.device) -> dict[str, float]:
    """Median seconds of each piece of work; they take turns, so that a busy moment of the machine hits all alike.

    One round more is run first and not counted: it finds memory, kernels and plans.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            seconds[name].append(_seconds(work, device))
    return {name: statistics.median(found[1:]) for name, found in seconds.items()}


def _seconds(work: Work, device: torch.device) -> float:
    wait_for(device)
    start = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - start
