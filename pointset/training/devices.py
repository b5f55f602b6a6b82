"""The device of a training, and the precision that is faster on it."""

import functools
import time
from contextlib import nullcontext

import torch

from pointset.errors import PointsetError, quoted
from pointset.runs.workers import torch_threads
from pointset.training.recipe import Recipe

ROWS, WIDTH = 1_600, 256
"""Shape of the timed product: the rows of a batch times a layer."""
PRODUCTS, ROUNDS = 3, 7
WORTH = 1.1
"""Ratio of the speeds above which bfloat16 is chosen: below, its rounding gains next to nothing."""


def find_device(name: str) -> torch.device:
    """Return the device of that name; "auto" is the GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # the tensors of "meta" have no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PointsetError(f"device {quoted(name)} is not available on this machine: use auto or cpu") from error
    return device


@functools.cache
def bfloat16_speed(device: str = "auto") -> float:
    """Return the ratio of the speeds of products in bfloat16 and in float32 on a device, measured once per process.

    It takes about a tenth of a second. The ratio is about 5 with AMX, and 0.3 on a processor without instructions for
    bfloat16. On a CPU, the processor time of one thread is measured, which depends little on other processes.
    """
    on = find_device(device)
    clock, threads = (time.thread_time, torch_threads(1)) if on.type == "cpu" else (time.perf_counter, nullcontext())

    def seconds(dtype: torch.dtype) -> float:
        X, W = torch.ones(ROWS, WIDTH, device=on, dtype=dtype), torch.ones(WIDTH, WIDTH, device=on, dtype=dtype)
        start = clock()
        for _ in range(PRODUCTS):
            product = X @ W
        product[0, 0].item()  # on a GPU, waits for it
        return clock() - start

    with threads:
        # The first round includes memory allocation and the choice of a kernel.
        rounds = [(seconds(torch.float32), seconds(torch.bfloat16)) for _ in range(1 + ROUNDS)][1:]
    slow, fast = zip(*rounds, strict=True)
    return min(slow) / min(fast)


def measured_precision(recipe: Recipe) -> Recipe:
    """Return the recipe with the faster precision on this machine in place of "auto"."""
    if recipe.precision == "auto":
        faster = bfloat16_speed(recipe.device) >= WORTH
        return recipe.changed({"precision": "bfloat16" if faster else "float32"})
    return recipe
