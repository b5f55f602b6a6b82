"""Work on a dask cluster: the same results as in one process; the death of a worker affects only its run."""

import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import fail
from fatal import FatalRun
from toy import results

from pointset.comparison.comparing import run_all, run_experiment
from pointset.comparison.runs import make_runs
from pointset.runs.workers import Workers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[dask]'")
    tests = str(Path(__file__).parent)  # where other processes find the class of the fatal run
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "scheduler_port": 0}
    with (
        pytest.MonkeyPatch.context() as patch,
        importlib.import_module("dask").config.set({"distributed.scheduler.allowed-failures": 0}),
    ):
        patch.setenv("PYTHONPATH", tests)
        with distributed.LocalCluster(**options) as started:
            yield started


@pytest.mark.slow
def test_a_cluster_changes_no_metric(cluster: Any, classifiers: Any, tmp_path: Path) -> None:
    experiment = classifiers("isab4-pma")
    there = Workers(scheduler=cluster.scheduler_address)
    found = run_experiment(experiment, tmp_path / "there", there, progress=False, report=False)
    assert not found.failures
    here = run_experiment(experiment, tmp_path / "here", Workers(1), progress=False, report=False)
    assert results(found) == results(here)


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster_is_named_and_the_others_finish(
    cluster: Any, classifiers: Any, tmp_path: Path
) -> None:
    harmless = make_runs(classifiers(), tmp_path)
    runs = [FatalRun(**vars(harmless[0])), *harmless[1:]]
    there = Workers(scheduler=cluster.scheduler_address)
    killed, other = sorted(run_all(runs, there), key=lambda outcome: outcome.model, reverse=True)
    assert "killed" in killed.reason
    assert other.result


@pytest.mark.parametrize("address", ["127.0.0.1:9", "tls://127.0.0.1:9", "nonsense"])
@pytest.mark.parametrize("command", ["compare", "tune", "data build"])
def test_a_scheduler_that_does_not_answer_is_named_before_any_work(
    command: str, address: str, clouds_folder: Path, tmp_path: Path, capsys: Any
) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[dask]'")
    experiment = f'data = "{clouds_folder}"\nmodels = ["rff-max"]\n'
    (tmp_path / "compare.toml").write_text(experiment)
    (tmp_path / "tune.toml").write_text(experiment + "[search]\ndim = [8, 16]\n")
    work = "shapes10" if command == "data build" else tmp_path / f"{command}.toml"
    started = time.monotonic()
    assert address in fail(capsys, *command.split(), work, "--scheduler", address)
    assert time.monotonic() - started < 5
