"""Shared by the tests of streaming."""

import pytest

from pointset.streaming import stream


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets a small block size, so that a small cloud has several blocks, the last not full."""
    monkeypatch.setattr(stream, "block_rows", lambda device: 64)
