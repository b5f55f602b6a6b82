"""Work in other processes, of which a killed one affects only its run; Ctrl-C and SIGTERM; progress."""

import importlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import fail
from joblib import Parallel, delayed, parallel_config
from toy import FatalRun, compare, kill_at, results

import pointset.comparison.comparing as comparing
from pointset.comparison.comparing import run_all, run_apart, run_one
from pointset.comparison.runs import Run, make_runs, records
from pointset.runs import progress, workers
from pointset.runs.progress import followed, progress_bar
from pointset.runs.workers import Workers, run_in_workers
from pointset.tasks import classification
from pointset.training.loop import Training

NEEDS_DASK = "needs distributed: pip install 'pointset[dask]'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "finished", "epochs"),
    [
        ((4, Training, "_save"), [True, False, False, False], 1),
        ((3, classification, "save_predictions"), [True, True, False, False], 2),
    ],
    ids=["in the second epoch of the second run", "between training and result of the third run"],
)
def test_killed_and_started_again_it_ends_with_identical_results(killed, finished, epochs, done, tmp_path):
    kill_at(*killed, compare, done.experiment, tmp_path)
    runs = make_runs(done.experiment, tmp_path)
    assert [one.finished for one in runs] == finished
    killed_run = runs[finished.index(False)]
    assert len((killed_run.folder / "history.jsonl").read_text().splitlines()) == epochs
    again = compare(done.experiment, tmp_path)
    assert results(again) == results(done)
    assert again.rankings[24].pairs == done.rankings[24].pairs
    assert not [path for path in tmp_path.rglob("*.tmp") if path.name != ".tmp"]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason=NEEDS_DASK)
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "scheduler_port": 0}
    with (
        pytest.MonkeyPatch.context() as patch,
        importlib.import_module("dask").config.set({"distributed.scheduler.allowed-failures": 0}),
    ):
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))  # where other processes find the fatal run
        with distributed.LocalCluster(**options) as started:
            yield Workers(scheduler=started.scheduler_address)


@pytest.mark.slow
def test_a_cluster_changes_no_metric(cluster, done, tmp_path):
    found = compare(done.experiment, tmp_path, cluster)
    assert not found.failures
    assert results(found) == results(done)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "there"])
def test_a_killed_worker_is_named_and_the_others_finish(where, classifiers, tmp_path, monkeypatch, request):
    workers = Workers(2) if where == "here" else request.getfixturevalue("cluster")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    harmless = make_runs(classifiers("rff-max", "rff-mean", "isab4-max"), tmp_path)
    runs = [FatalRun(**vars(harmless[0])), *harmless[1:]]
    outcomes = {outcome.model: outcome for outcome in run_all(runs, workers)}
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


@pytest.mark.parametrize("address", ["127.0.0.1:9", "tls://127.0.0.1:9", "nonsense"])
def test_a_scheduler_that_does_not_answer_is_named_before_any_work(address, clouds_folder, tmp_path, capsys):
    pytest.importorskip("distributed", reason=NEEDS_DASK)
    (tmp_path / "it.toml").write_text(f'data = "{clouds_folder}"\nmodels = ["rff-max"]\n')
    started = time.monotonic()
    assert address in fail(capsys, "compare", tmp_path / "it.toml", "--scheduler", address)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("begun", [(), (1,), (0, 1)])
def test_what_a_broken_worker_pool_leaves_is_never_performed_in_this_process(begun, classifiers, tmp_path, monkeypatch):
    """A pool that breaks before the first job is not restarted forever; a single run left over may be the killer."""
    runs = make_runs(classifiers(), tmp_path)
    pools = []

    def broken(jobs, *_):
        pools.append(list(jobs))
        for number in begun:
            runs[number].folder.mkdir(parents=True)
        raise comparing.BrokenProcessPool
        yield

    monkeypatch.setattr(comparing, "run_in_workers", broken)
    monkeypatch.setattr(comparing, "run_apart", lambda run: run.model)
    assert list(run_all(runs, Workers(2))) == ["rff-max", "isab4-pma"]
    assert len(pools) == 1


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

    monkeypatch.setattr(records, "write_text", full)
    monkeypatch.setattr(Run, "perform", full)
    (run,) = make_runs(classifiers("rff-max"), tmp_path)
    failure = run_one(run)
    assert failure.reason.startswith("OSError: [Errno 28] No space left on device")
    assert not run.failure_file.exists()


def grow(number: int) -> int:
    """Use more memory than joblib allows a worker, and wait until joblib has checked it."""
    time.sleep(1.1)
    held.append(b"x" * 400_000_000)
    return number


held: list[bytes] = []


@pytest.mark.slow
def test_a_worker_that_has_grown_is_replaced_without_a_warning():
    """Warnings are errors here: in joblib's thread, one would make joblib hang."""
    assert sorted(run_in_workers((delayed(grow)(number) for number in range(6)), Workers(2), 2)) == list(range(6))


@pytest.mark.parametrize(
    ("count", "jobs", "threads", "expected"),
    [(None, 100, 1, 12), (None, 100, 5, 2), (None, 3, 1, 3), (None, 9, 40, 1), (4, 100, 9, 4), (4, 0, 1, 1)],
)
def test_jobs_at_once_fill_the_cores_and_no_more(count, jobs, threads, expected, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 12)
    assert Workers(count).at_once(jobs, threads) == expected


def test_interrupts_are_handled_again_behind_the_block():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    with workers.interrupts_blocked():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_worker_ends_with_its_parent():
    worker = "import os, time; from pointset.runs import workers; workers.end_with(os.getppid())"
    worker += "; print(os.getpid(), flush=True); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    child.wait(timeout=20)


@pytest.mark.parametrize(
    ("what", "unit", "total", "options", "line"),
    [
        ("training", "step", 6000, {}, r"training: 3000 of 6000 steps done, about \d\d:\d\d to go"),
        ("embedding", "batch", 100_000, {}, r"embedding: 3000 of 100000 batches done, about [\d:]+ to go"),
        ("unpacking\x1b[31m", "file", None, {}, r"unpacking\\x1b\[31m: 3000 files done"),
        ("it.tar", "B", 25_000, {"scaled": True}, r"it\.tar: 3\.00k of 25\.0k B done, about [\d:]+ to go"),
    ],
)
def test_a_line_says_what_is_done_and_how_long_the_rest_takes(what, unit, total, options, line, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress_bar(what, unit, total, done=1000, **options, leave=False) as bar:
        bar.update(2000)
    (*_, last) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(line, last), last


def test_short_work_writes_nothing_and_batches_count_as_the_shapes_that_are_in_them(monkeypatch, capsys):
    for options in ({"total": 2}, {"show": False}):
        assert list(followed("ab", "reading", "file", **options)) == ["a", "b"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    list(followed(["ab", "cde"], "embedding", "shape", 5, size=len))
    assert "embedding: 5 of 5 shapes done" in capsys.readouterr().err


START = [sys.executable, "-m", "pointset"]
GOES_ON = "; run the same command again to continue\n"
SETS = ["--points", "24", "--dim", "16", "--epochs", "400"]
COMPARED = [*["--models", "rff-max", "--out", "out", "--workers", "2"], *SETS]


@pytest.fixture
def started(tmp_path):
    """Starts commands, each in its own session, and ends their remaining processes."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        env = {**os.environ, "POINTSET_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
        env["PYTHONPATH"] = str(Path(__file__).parents[2])
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        begun.append(subprocess.Popen([*START, *arguments], env=env, start_new_session=True, **options))
        return begun[-1]

    # A shell has its background jobs ignore Ctrl-C, and what they start inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield start
    signal.signal(signal.SIGINT, before)
    for process in begun:
        if session(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        if not process.stderr.closed:
            process.communicate()


def session(leader: int, name: str = "") -> list[str]:
    """The processes of a session, of which a part of the command line may be given."""
    command = ["pgrep", "-s", str(leader), *(["-f", name] if name else [])]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def is_blocked(number: signal.Signals, process: str) -> bool:
    """True if a process blocks a signal."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    return bool(int(mask, 16) & 1 << (number - 1))


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not condition():
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()


def end(process: subprocess.Popen[str], code: int, message: str) -> None:
    closed = process.stderr.closed
    said = message if closed else process.communicate(timeout=120)[1]
    assert (process.wait(timeout=60), said) == (code, message)
    last = time.monotonic() + 60
    while time.monotonic() < last and session(process.pid):
        time.sleep(0.1)
    assert session(process.pid) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "number"), [("train", signal.SIGTERM), ("compare", signal.SIGINT), ("compare", signal.SIGTERM)]
)
def test_in_the_middle_of_a_command(command, number, started, clouds_folder, tmp_path):
    """Its output may be closed, as if the reader had ended; its workers must end too."""
    options, begun = {
        "train": (["rff-max", "--data", str(clouds_folder), "--run", "out", *SETS], "out/history.jsonl"),
        "compare": ([*COMPARED, "--data", str(clouds_folder)], "out/runs/*/history.jsonl"),
    }[command]
    process = started(*command.split(), *options)
    wait_for(lambda: any(tmp_path.glob(begun)), process)
    if command == "compare" and number == signal.SIGTERM:
        process.stderr.close()
        process.stdout.close()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
        end(process, 130, f"pointset: interrupted{GOES_ON}")
    else:
        process.send_signal(number)
        end(process, 143, f"pointset: terminated{GOES_ON}")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_while_workers_start(started, clouds_folder):
    """Workers ignore Ctrl-C, because an interrupted worker would end with a traceback."""
    process = started("compare", *COMPARED, "--data", str(clouds_folder))
    wait_for(lambda: session(process.pid, "LokyProcess"), process)
    assert all(is_blocked(signal.SIGINT, worker) for worker in session(process.pid, "LokyProcess"))
    os.killpg(process.pid, signal.SIGINT)
    end(process, 130, f"pointset: interrupted{GOES_ON}")
