"""What the operating system does for us: flushing, signals, workers that end with their parent, shared cores."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from pointset.runs import system


def test_files_and_folders_are_flushed(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    system.sync(tmp_path / "file")
    system.sync(tmp_path)
    with pytest.raises(FileNotFoundError):
        system.sync(tmp_path / "missing")


def test_interrupts_are_handled_again_behind_the_block():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it
    with system.interrupts_blocked():
        pass
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_worker_ends_with_its_parent():
    worker = """
import os, sys, time
from pointset.runs import system
system.end_with(os.getppid())
print(os.getpid(), flush=True)
time.sleep(60)
"""
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    child.wait(timeout=20)


@pytest.mark.parametrize(
    ("load", "fixed", "threads"), [(0.2, False, "8"), (6.4, False, "2"), (30.0, False, "1"), (6.4, True, None)]
)
def test_threads_sleep_when_idle_and_take_free_cores(load, fixed, threads, monkeypatch):
    monkeypatch.setattr(system.os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(system.os, "sched_getaffinity", lambda _: set(range(8)))
    for name in ("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")  # restored at the end
        monkeypatch.delenv(name)
    system.share_cores(fixed)
    assert system.os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert system.os.environ.get("OMP_NUM_THREADS") == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    system.share_cores(fixed=False)
    assert system.os.environ["OMP_NUM_THREADS"] == "3", "what the user says stays"
