"""The fastest type for the matrix products of a training, measured: the name of a processor does not tell."""

import functools
import time
import warnings
from contextlib import nullcontext

import torch

from pointset.runs.workers import torch_threads
from pointset.training.devices import find_device

ROWS, WIDTH = 1_600, 256
"""Shape of the timed product: the rows of a batch times a layer."""
PRODUCTS, ROUNDS = 3, 7
WORTH = 1.1
"""Ratio of the speeds above which bfloat16 is chosen: below, its rounding gains next to nothing."""


@functools.cache
def bfloat16_speed(device: str = "auto") -> float:
    """The ratio of the speeds of products in bfloat16 and in float32 on a device, measured once per process.

    It takes about a tenth of a second. The ratio is about 5 with AMX, and 0.3 on a processor without instructions for
    bfloat16. On a CPU, the processor time of one thread is measured, which other work on the machine hardly affects.
    """
    on = find_device(device)
    slow, fast = (_Product(on, dtype) for dtype in (torch.float32, torch.bfloat16))
    threads = torch_threads(1) if on.type == "cpu" else nullcontext()
    with threads:
        slow.seconds(), fast.seconds()  # the first includes memory allocation and the choice of a kernel
        rounds = [(slow.seconds(), fast.seconds()) for _ in range(ROUNDS)]
    return min(seconds for seconds, _ in rounds) / min(seconds for _, seconds in rounds)


def warn_of_slow_products(precision: str, device: str) -> None:
    """Warn if bfloat16 was requested but float32 is faster."""
    if precision == "bfloat16" and (speed := bfloat16_speed(device)) < 1.0:
        warnings.warn(
            f"products in bfloat16 take {1 / speed:.1f} times as long as in float32 on this machine: set precision "
            'to "float32", or to "auto", which measures',
            stacklevel=3,
        )


class _Product:
    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.clock = time.thread_time if device.type == "cpu" else time.perf_counter
        self.X = torch.ones(ROWS, WIDTH, device=device, dtype=dtype)
        self.W = torch.ones(WIDTH, WIDTH, device=device, dtype=dtype)

    def seconds(self) -> float:
        start = self.clock()
        for _ in range(PRODUCTS):
            product = self.X @ self.W
        product[0, 0].item()  # on a GPU, waits for it
        return self.clock() - start
