"""A command without enough memory ends with one sentence."""

import re

import numpy as np
import pytest
import torch
from command_line import fail

from pointset.cli import of_memory
from pointset.zoo import abilities


@pytest.mark.parametrize(
    ("error", "much"),
    [
        (MemoryError(), ""),
        (MemoryError("Unable to allocate 728. TiB for an array with shape (9, 9)"), " (728. TiB at once)"),
        (
            RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes."
            ),
            " (4000 bytes at once)",
        ),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"), " (20.00 GiB at once)"),
    ],
)
def test_too_little_memory_is_one_line_and_code_2(error, much, capsys, monkeypatch):
    def too_much() -> None:
        raise error

    monkeypatch.setattr(abilities, "list_models", too_much)
    assert fail(capsys, "zoo", "--dim", "16").startswith(f"pointset: not enough memory{much}: ")


def test_the_memory_errors_of_torch_and_numpy_are_recognised():
    """Other versions may have other messages."""
    for ask in (lambda: torch.empty(10**8, 10**6), lambda: np.empty((10**8, 10**6))):
        with pytest.raises((MemoryError, RuntimeError)) as caught:
            ask()
        assert of_memory(caught.value)
        assert re.search(r"allocate \d", str(caught.value))
    assert not of_memory(RuntimeError("a tensor has another shape"))
    assert not of_memory(ValueError("out of memory"))
