"""Shared by every test: run-time shape checks on the annotations, and where the real data lies."""

import os
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Shape annotations are checked here and nowhere else: at run time they would cost 20 us a call.
install_import_hook(["pointset.nn", "pointset.zoo"], "beartype.beartype")

CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ModelNet data, when this machine has one."""
    folder = Path(os.environ.get("POINTSET_TEST_DATA", CHECKOUT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set POINTSET_TEST_DATA to a folder that has it")
    return folder
