"""A worker process that is killed, for example by the out-of-memory killer, is named, and the other runs finish."""

import sys
from pathlib import Path

import pytest
from fatal import FatalRun
from joblib import Parallel, delayed, parallel_config

import pointset.comparison.comparing
import pointset.comparison.runs
from pointset.comparison.comparing import run_all, run_apart, run_one
from pointset.comparison.runs import make_runs
from pointset.runs.workers import Workers


@pytest.mark.slow
def test_a_killed_worker_is_named_and_the_others_finish(classifiers, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where other processes find the class
    harmless = make_runs(classifiers("rff-max", "rff-mean", "isab4-max"), tmp_path)
    runs = [FatalRun(**vars(harmless[0])), *harmless[1:]]
    outcomes = {outcome.model: outcome for outcome in run_all(runs, Workers(2))}
    assert len(outcomes) == 3
    assert outcomes["rff-mean"].result
    assert outcomes["isab4-max"].result
    killed = outcomes["rff-max"]
    assert killed.reason == "its process was killed, perhaps for lack of memory: use fewer workers"
    assert harmless[0].failure_file.read_text() == killed.reason + "\n"
    (again,) = run_all(harmless[:1], Workers(1))
    assert again.result
    assert not harmless[0].failure_file.exists()
    with parallel_config("loky", n_jobs=2):
        assert Parallel()(delayed(abs)(number) for number in (-3, 2)) == [3, 2], "joblib's own pool is as it was"


def test_a_worker_pool_that_breaks_before_the_first_job_is_not_restarted_forever(classifiers, tmp_path, monkeypatch):
    runs = make_runs(classifiers(), tmp_path)

    def broken(*_):
        raise pointset.comparison.comparing.BrokenProcessPool
        yield

    monkeypatch.setattr(pointset.comparison.comparing, "run_in_workers", broken)
    monkeypatch.setattr(pointset.comparison.comparing, "run_apart", lambda run: run.model)
    assert list(run_all(runs, Workers(2))) == ["rff-max", "isab4-pma"]


def test_a_separate_process_that_cannot_start_reports_why(classifiers, tmp_path, monkeypatch):
    (run,) = make_runs(classifiers("rff-max"), tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert run_apart(run).reason == "its process ended with code 1: no message"
    (tmp_path / "torch.py").write_text("raise ImportError('libgomp is not there')")
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_apart(run).reason == "its process ended with code 1: ImportError: libgomp is not there"
    assert run.failure_file.exists()


def test_a_failure_reason_that_cannot_be_written_stops_no_other_run(classifiers, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pointset.comparison.runs.digests, "write_text", full)
    monkeypatch.setattr(pointset.comparison.runs.Run, "perform", full)
    (run,) = make_runs(classifiers("rff-max"), tmp_path)
    failure = run_one(run)
    assert failure.reason.startswith("OSError: [Errno 28] No space left on device")
    assert not run.failure_file.exists()
