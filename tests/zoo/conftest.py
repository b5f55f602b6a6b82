import pytest

from pointset.nn import registry
from pointset.zoo.names import load_files


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """What a test registers is gone after it; the package's own parts, which the first import enters, are not."""
    load_files()
    monkeypatch.setattr(registry, "PARTS", registry.PARTS.copy())
