"""What joblib's workers do when nobody asked them to."""

import importlib.util
import time

import pytest
from joblib import Parallel, delayed, parallel_config

from pointset.processes import recycled_quietly


def grow(number: int) -> int:
    """Grow by more than joblib lets a worker grow, and give it time to look."""
    time.sleep(1.1)
    held.append(b"x" * 400_000_000)
    return number


held: list[bytes] = []


@pytest.mark.skipif(importlib.util.find_spec("psutil") is None, reason="without psutil joblib does not look at memory")
def test_a_worker_that_has_grown_is_replaced_without_a_word():
    """Warnings are errors here: in joblib's own thread one would leave everybody waiting."""
    with recycled_quietly(), parallel_config("loky", n_jobs=2):
        assert sorted(Parallel()(delayed(grow)(number) for number in range(6))) == list(range(6))
