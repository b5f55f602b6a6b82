"""Shared by the tests of reports."""

import pytest

from pointset.comparison.results import Results


@pytest.fixture(scope="module")
def results(reported) -> Results:
    return reported.results(24)
