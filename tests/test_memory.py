"""Freed memory that stays with the process while it trains."""

import platform
import resource

import pytest
import torch

from pointset.memory import kept_memory

BLOCK = 2**24
PAGES = 4 * BLOCK // resource.getpagesize()

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's options")


def new_pages(rounds: int = 5) -> float:
    """Pages that a block of 64 MB, filled and freed, makes the process touch for the first time, each time."""
    for _ in range(10):  # the block may lie in a few places by turns
        torch.ones(BLOCK)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        torch.ones(BLOCK)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / rounds


def resident() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123  no file of ours
        return int(file.read().split()[1])


def test_memory_is_used_again_inside_and_handed_back_after():
    with kept_memory():
        assert new_pages() < PAGES / 10
        inside = resident()
    assert resident() < inside - PAGES / 2
