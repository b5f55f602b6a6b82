"""Temporary evaluation mode of a module."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put the module in evaluation mode inside this block; afterwards restore the mode of each submodule."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
