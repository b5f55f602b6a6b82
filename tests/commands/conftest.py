"""Runs of every kind, each trained once, and what they were trained on."""

from pathlib import Path

import pytest
from toy import train_run


@pytest.fixture(scope="session")
def isab_run(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with attention maps."""
    train_run(run := tmp_path_factory.mktemp("isab") / "isab", clouds_folder, "isab4-pma", 24, dim=16, heads=2)
    return run


@pytest.fixture(scope="session")
def plain_run(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier without attention maps."""
    train_run(run := tmp_path_factory.mktemp("plain") / "plain", clouds_folder, "rff-max", 24, dim=16, layers=2)
    return run
