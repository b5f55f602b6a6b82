"""What every test of streaming needs."""

import pytest

from pointset.streaming import passes


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks to a small cloud, and a last one that is not full."""
    monkeypatch.setattr(passes, "block_rows", lambda device: 64)
