"""Which type the matrix products of a training are computed in: found by measuring, since no processor's name tells."""

import functools
import statistics
import time
import warnings

import torch

from pointset.training.devices import find_device

ROWS, WIDTH = 1_600, 256
"""Shape of the product that is timed: the rows of a batch times a layer."""
PRODUCTS, ROUNDS = 3, 7
WORTH = 1.1
"""How many times faster bfloat16 must be before it is chosen: below, its rounding buys next to nothing."""


@functools.cache
def bfloat16_speed(device: str = "auto") -> float:
    """How many times faster products are in bfloat16 than in float32 on a device, measured once in a process.

    About a tenth of a second: the median ratio of several rounds of both, in turn. With AMX it is about 4, and 0.3 on a
    processor without instructions for it.
    """
    place = find_device(device)
    slow, fast = (_Product(place, dtype) for dtype in (torch.float32, torch.bfloat16))
    slow.seconds(), fast.seconds()  # the first one pays for memory and for the choice of a kernel
    return statistics.median(slow.seconds() / fast.seconds() for _ in range(ROUNDS))


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
        self.device = device
        self.X = torch.ones(ROWS, WIDTH, device=device, dtype=dtype)
        self.W = torch.ones(WIDTH, WIDTH, device=device, dtype=dtype)

    def seconds(self) -> float:
        start = time.perf_counter()
        for _ in range(PRODUCTS):
            product = self.X @ self.W
        product[0, 0].item()  # on a GPU, waits for it
        return time.perf_counter() - start
