import pytest

from pointset.nn import registry
from pointset.zoo.names import load_files


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Removes what a test registers, but keeps the parts of the package."""
    load_files()
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED.copy())
