"""Fixtures of the data layer: an own home and folder of meshes for each test."""

import pytest
from toy import write_mesh


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def few(tmp_path):
    """Six tetrahedra of two classes, all for training; shape i has length i + 1."""
    for number in range(6):
        write_mesh(tmp_path / "few" / f"class{number % 2}" / "train", number)
    return tmp_path / "few"
