import pytest

from pointset.nn import registry


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "PARTS", registry.PARTS.copy())
