"""A command that is killed at any moment and started again gives the same results."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pointset.comparison.comparing import run_experiment, status
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.results import Comparison
from pointset.runs.workers import Workers
from pointset.tasks.classification import Classification
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

pytestmark = pytest.mark.slow

PRELUDE = """
import os, signal, sys
from pathlib import Path
data, out = sys.argv[1:3]
"""
COMPARE = """
import pointset
pointset.compare(
    ["isab4-pma", "rff-max"], data, seeds=[0, 1], points=[24], out=out, workers=1, progress=False,
    report=False, model_options=pointset.ModelOptions(dim=16), recipe=pointset.Recipe(epochs=2, batch_size=16),
)
"""
KILLED = """
import pointset.{module}, pointset.tasks.experiments
count = 0
plain = pointset.{module}.{owner}{name}

def deadly(*arguments, **options):
    global count
    count += 1
    if count == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*arguments, **options)

pointset.{module}.{owner}{name} = deadly
"""


def script(data: Path, out: Path, text: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + text, str(data), str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def experiment(data: Path) -> Experiment:
    return Experiment(
        models=(Entry("isab4-pma"), Entry("rff-max")),
        task=Classification(data=str(data), points=(24,)),
        seeds=(0, 1),
        model=ModelOptions(dim=16),
        recipe=Recipe(epochs=2, batch_size=16),
    )


def run(data: Path, out: Path) -> Comparison:
    return run_experiment(experiment(data), out, Workers(1), progress=False, report=False)


def results(comparison: Comparison) -> list:
    return [replace(run, seconds=0.0) for run in comparison.runs]


@pytest.fixture(scope="module")
def whole(clouds_folder, tmp_path_factory) -> Comparison:
    return run(clouds_folder, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    ("killed", "states"),
    [
        # In the second epoch of the second run: its first epoch is kept.
        (
            {"module": "training.loop", "owner": "Training.", "name": "_save", "call": 4},
            [("finished", 2), ("stopped", 1), ("waiting", 0), ("waiting", 0)],
        ),
        # The third run is trained, its predictions are not written yet.
        (
            {"module": "tasks.classification", "owner": "", "name": "save_predictions", "call": 3},
            [("finished", 2), ("finished", 2), ("stopped", 2), ("waiting", 0)],
        ),
    ],
    ids=["in an epoch", "between training and result"],
)
def test_killed_and_started_again_it_ends_with_identical_results(killed, states, whole, clouds_folder, tmp_path):
    done = script(clouds_folder, tmp_path, KILLED.format(**killed) + COMPARE)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [(one["state"], one["done"]) for one in status(experiment(clouds_folder), tmp_path)] == states
    again = run(clouds_folder, tmp_path)
    assert results(again) == results(whole)
    assert again.pairs == whole.pairs
    assert not list(tmp_path.glob("runs/*/*.tmp"))
    assert not list(tmp_path.glob("runs/*/.*.tmp"))
