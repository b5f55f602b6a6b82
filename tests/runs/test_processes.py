"""Side effects of joblib's workers: replaced workers, and the number of parallel jobs."""

import importlib.util
import time

import pytest
from joblib import delayed

from pointset.runs.workers import Workers, run_in_workers


def grow(number: int) -> int:
    """Use more memory than joblib allows a worker, and wait until joblib has checked it."""
    time.sleep(1.1)
    held.append(b"x" * 400_000_000)
    return number


held: list[bytes] = []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("psutil") is None, reason="without psutil joblib does not look at memory")
def test_a_worker_that_has_grown_is_replaced_without_a_warning():
    """Warnings are errors here: in joblib's thread, one would make joblib hang."""
    assert sorted(run_in_workers((delayed(grow)(number) for number in range(6)), Workers(2), 2)) == list(range(6))


@pytest.mark.parametrize(
    ("count", "jobs", "threads", "expected"),
    [
        (None, 100, 1, 12),
        (None, 100, 5, 2),
        (None, 3, 1, 3),
        (None, 9, 40, 1),
        (4, 100, 9, 4),
        (4, 2, 1, 2),
        (4, 0, 1, 1),
    ],
)
def test_jobs_at_once_fill_the_cores_and_no_more(count, jobs, threads, expected, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 12)
    assert Workers(count).at_once(jobs, threads) == expected
