"""A comparison that is killed at any moment and started again gives the same results."""

from pathlib import Path
from typing import Any

import pytest
from damage import kill_at
from toy import results

from pointset.comparison.comparing import run_experiment, status
from pointset.comparison.experiment import Experiment
from pointset.comparison.results import Comparison
from pointset.runs.workers import Workers
from pointset.tasks import classification
from pointset.training.loop import Training
from pointset.training.recipe import Recipe

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def experiment(classifiers: Any) -> Experiment:
    return classifiers("isab4-pma", "rff-max", seeds=(0, 1), recipe=Recipe(epochs=2, batch_size=16))


def run(experiment: Experiment, out: Path) -> Comparison:
    return run_experiment(experiment, out, Workers(1), progress=False, report=False)


@pytest.fixture(scope="module")
def whole(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return run(experiment, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    ("killed", "states"),
    [
        # In the second epoch of the second run: its first epoch is kept.
        ((4, Training, "_save"), [("finished", 2), ("stopped", 1), ("waiting", 0), ("waiting", 0)]),
        # The third run is trained, its predictions are not written yet.
        (
            (3, classification, "save_predictions"),
            [("finished", 2), ("finished", 2), ("stopped", 2), ("waiting", 0)],
        ),
    ],
    ids=["in an epoch", "between training and result"],
)
def test_killed_and_started_again_it_ends_with_identical_results(killed, states, experiment, whole, tmp_path):
    kill_at(*killed, run, experiment, tmp_path)
    assert [(one.state, one.epochs) for one in status(experiment, tmp_path)] == states
    again = run(experiment, tmp_path)
    assert results(again) == results(whole)
    assert again.pairs == whole.pairs
    assert not list(tmp_path.glob("runs/*/*.tmp"))
    assert not list(tmp_path.glob("runs/*/.*.tmp"))
