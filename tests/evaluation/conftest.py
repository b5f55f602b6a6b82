"""Shared by the tests of evaluation."""

from collections.abc import Iterator

import pytest

from pointset.data.batches import one_thread


@pytest.fixture
def single_thread() -> Iterator[None]:
    with one_thread():
        yield
