"""Shared by the tests of reports."""

import pytest

from pointset.comparison.evidence import Evidence


@pytest.fixture(scope="module")
def evidence(reported) -> Evidence:
    return reported.evidence(24)
