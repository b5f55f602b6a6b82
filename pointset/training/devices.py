"""The device of a training, and the random numbers of its dropout there."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from pointset.errors import PointsetError, quoted


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU if there is one, else the CPU.

    Raises:
        PointsetError: it is not available on this machine, or in this version of torch.
    """
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # the tensors of "meta" have no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise PointsetError(f"device {quoted(name)} is not available on this machine: use auto or cpu") from error
    return device


@contextmanager
def seeded_dropout(seed: int, epoch: int, device: torch.device, rank: int = 0) -> Iterator[None]:
    """Seed torch's global generators, from which dropout draws, by (seed, epoch, rank) inside this block."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type):
        key = (seed, epoch, 0xD0) if rank == 0 else (seed, epoch, 0xD0, rank)  # the main process: as a single one
        state = np.random.SeedSequence(key).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0] >> np.uint64(1)))
        yield
