"""Which type the matrix products of a training are computed in: found by measuring, since no processor's name tells."""

import functools
import time
import warnings
from contextlib import nullcontext

import torch

from pointset.runs.threads import torch_threads
from pointset.training.devices import find_device

ROWS, WIDTH = 1_600, 256
"""Shape of the product that is timed: the rows of a batch times a layer."""
PRODUCTS, ROUNDS = 3, 7
WORTH = 1.1
"""How many times faster bfloat16 must be before it is chosen: below, its rounding buys next to nothing."""


@functools.cache
def bfloat16_speed(device: str = "auto") -> float:
    """How many times faster products are in bfloat16 than in float32 on a device, measured once in a process.

    About a tenth of a second: the ratio of the shortest of several rounds of both, in turn. With AMX it is about 5, and
    0.3 on a processor without instructions for it. On a CPU it is one thread's, and the processor's time: by a clock,
    and with threads that wait for one another, a busy machine would decide.
    """
    place = find_device(device)
    slow, fast = (_Product(place, dtype) for dtype in (torch.float32, torch.bfloat16))
    threads = torch_threads(1) if place.type == "cpu" else nullcontext()
    with threads:
        slow.seconds(), fast.seconds()  # the first one pays for memory and for the choice of a kernel
        rounds = [(slow.seconds(), fast.seconds()) for _ in range(ROUNDS)]
    return min(one for one, _ in rounds) / min(other for _, other in rounds)


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
