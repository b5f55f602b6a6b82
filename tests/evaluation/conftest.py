"""Shared by the tests of evaluation."""

from collections.abc import Iterator

import pytest

from pointset.runs.workers import torch_threads


@pytest.fixture
def single_thread() -> Iterator[None]:
    with torch_threads(1):
        yield
