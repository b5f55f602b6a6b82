"""A worker process that is killed, as the kernel does when memory is short: named, and the other cells finish."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from fatal import FatalJob
from joblib import Parallel, delayed, parallel_config

import pointset.comparison.cells
import pointset.runs.jobs
from pointset.comparison.cells import Cell, Failure, run_apart, run_job, run_jobs
from pointset.comparison.comparing import make_jobs
from pointset.comparison.experiment import Entry, Experiment
from pointset.runs.workers import Workers
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


def grid(data: Path, *models: str, seeds: Sequence[int] = (0,)) -> Experiment:
    return Experiment(
        models=tuple(Entry(model) for model in models or ("rff-max", "isab4-pma")),
        data=str(data),
        points=(24,),
        seeds=tuple(seeds),
        model=ModelOptions(dim=16),
        recipe=Recipe(epochs=1, batch_size=16),
    )


def test_a_killed_worker_is_named_and_the_others_finish(clouds_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where other processes find the class
    harmless = make_jobs(grid(clouds_folder, "rff-max", "rff-mean", "isab4-max"), tmp_path)
    jobs = [FatalJob(**vars(harmless[0])), *harmless[1:]]
    outcomes = {outcome.model: outcome for outcome in run_jobs(jobs, Workers(2))}
    assert len(outcomes) == 3
    assert isinstance(outcomes["rff-mean"], Cell)
    assert isinstance(outcomes["isab4-max"], Cell)
    killed = outcomes["rff-max"]
    assert isinstance(killed, Failure)
    assert killed.reason == "its process was killed, for want of memory perhaps: give fewer workers"
    assert harmless[0].failure.read_text() == killed.reason + "\n"
    (again,) = run_jobs(harmless[:1], Workers(1))
    assert isinstance(again, Cell)
    assert not harmless[0].failure.exists()
    with parallel_config("loky", n_jobs=2):
        assert Parallel()(delayed(abs)(number) for number in (-3, 2)) == [3, 2], "joblib's own pool is as it was"


def test_what_a_killed_worker_had_not_begun_goes_on_side_by_side(clouds_folder, tmp_path, monkeypatch):
    """Only what had been begun is run apart; the pool is asked again for the rest, and may break again."""
    jobs = make_jobs(grid(clouds_folder, seeds=(0, 1, 2)), tmp_path)
    asked, apart = [], []

    def spread(left, workers):
        asked.append([job.folder.name for job in left])
        for job in left[:1]:
            yield job, "finished"
        if len(left) > 2:
            for job in left[1:3]:
                job.folder.mkdir(parents=True)
            raise pointset.runs.jobs.BrokenProcessPool
        for job in left[1:]:
            yield job, "finished"

    def run_apart(job):
        apart.append(job.folder.name)
        return "apart"

    monkeypatch.setattr(pointset.runs.jobs, "_spread", spread)
    monkeypatch.setattr(pointset.runs.jobs, "run_apart", run_apart)
    names = [job.folder.name for job in jobs]
    assert list(run_jobs(jobs, Workers(2))) == ["finished", "apart", "apart", "finished", "apart", "apart"]
    assert asked == [names, names[3:]]
    assert apart == [*names[1:3], *names[4:]]


def test_a_pool_that_breaks_before_anything_is_begun_does_not_go_on_for_ever(clouds_folder, tmp_path, monkeypatch):
    jobs = make_jobs(grid(clouds_folder), tmp_path)

    def broken(left, workers):
        raise pointset.runs.jobs.BrokenProcessPool
        yield

    monkeypatch.setattr(pointset.runs.jobs, "_spread", broken)
    monkeypatch.setattr(pointset.runs.jobs, "run_apart", lambda job: job.label)
    assert list(run_jobs(jobs, Workers(2))) == ["rff-max", "isab4-pma"]


def test_a_process_apart_that_cannot_start_says_why(clouds_folder, tmp_path, monkeypatch):
    (job,) = make_jobs(grid(clouds_folder, "rff-max"), tmp_path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert run_apart(job).reason == "its process ended with code 1: it said nothing"
    (tmp_path / "torch.py").write_text("raise ImportError('libgomp is not there')")
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run_apart(job).reason == "its process ended with code 1: ImportError: libgomp is not there"
    assert job.failure.exists()


def test_a_failure_apart_is_told_as_it_would_be_here(clouds_folder, tmp_path):
    (job,) = make_jobs(grid(clouds_folder, "rff-max"), tmp_path)
    lost = replace(job, data="no-such-data")
    assert run_apart(lost) == run_job(lost)
    assert "no-such-data" in job.failure.read_text()


def test_a_disk_that_takes_no_reason_stops_no_other_cell(clouds_folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pointset.runs.jobs, "write_text", full)
    monkeypatch.setattr(pointset.comparison.cells.Job, "perform", full)
    (job,) = make_jobs(grid(clouds_folder, "rff-max"), tmp_path)
    failure = run_job(job)
    assert failure.reason == "OSError: [Errno 28] No space left on device"
    assert not job.failure.exists()


def test_a_process_apart_leaves_the_cores_to_the_others(clouds_folder, tmp_path, monkeypatch):
    asked = {}

    def ended(*_, env, **__):
        asked.update(env)
        return SimpleNamespace(returncode=0, stderr=b"")

    monkeypatch.setattr(pointset.runs.jobs.subprocess, "run", ended)
    (job,) = make_jobs(replace(grid(clouds_folder, "rff-max"), threads=3), tmp_path)
    failure = run_apart(job)
    assert (asked["OMP_NUM_THREADS"], asked["OPENBLAS_NUM_THREADS"]) == ("3", "3")
    assert asked["PATH"] == os.environ["PATH"]
    assert failure.reason == f"its process left neither a result nor a reason in {job.folder}: is the disk full?"
