"""Using a module as it is in evaluation, and giving it back as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Switch dropout and batch statistics off in this block; every part gets its mode back, also after an error."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
