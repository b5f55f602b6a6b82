"""Freed memory stays with the process while it trains."""

import json
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's options")

PROGRAM = """
import json, resource
import torch
from pointset.training.memory import kept_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    return int(open("/proc/self/statm").read().split()[1])

with kept_memory():
    for _ in range(20):  # the block may lie in a few places by turns
        torch.ones(2**24)
    before = faults()
    for _ in range(5):
        torch.ones(2**24)
    touched, inside = faults() - before, resident()
print(json.dumps({"touched": touched, "inside": inside, "after": resident(), "pages": 2**26 // resource.getpagesize()}))
"""


@pytest.mark.slow
def test_memory_is_used_again_inside_and_handed_back_after():
    """Allocates and frees blocks of 64 MB in a separate process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["touched"] < found["pages"], "five blocks, each once and again, would be five times as many"
    assert found["after"] < found["inside"] - found["pages"] / 2
