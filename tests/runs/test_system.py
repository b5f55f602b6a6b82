"""What differs between operating systems is in one module, whose branches for Windows run here as far as they can."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import pointset
from pointset.runs import system

ONLY_POSIX = re.compile(
    r"\b(os\.(fork|kill|killpg|getppid|getuid|geteuid|setsid|chown|statvfs|mkfifo|sched_\w+|O_DIRECTORY|uname)"
    r"|signal\.(SIGKILL|SIGALRM|SIGHUP|SIGSTOP|SIGCONT|pthread_\w+|alarm|setitimer|sigwait)"
    r"|(import|from) (fcntl|resource|pwd|grp|termios|pty|tty)\b)"
    r"|\"/(proc|dev|tmp|etc)/"
)


def test_only_one_module_uses_what_posix_alone_has():
    package = Path(pointset.__file__).parent
    modules = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    assert {name for name, text in modules.items() if ONLY_POSIX.search(text)} == {"runs/system.py"}


@pytest.fixture(params=[False, True], ids=["here", "windows"])
def windows(request, monkeypatch) -> bool:
    if request.param:
        monkeypatch.setattr(system, "IS_WINDOWS", True)
        monkeypatch.setattr(system.os, "kill", None)
        monkeypatch.setattr(system.os, "getppid", None)
        monkeypatch.setattr(signal, "pthread_sigmask", None)
    return request.param


def test_files_and_folders_are_flushed(windows, tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    system.sync(tmp_path / "file")
    system.sync(tmp_path)
    with pytest.raises(FileNotFoundError):
        system.sync(tmp_path / "missing")


def test_a_signal_reaches_this_process(windows):
    with pytest.raises(KeyboardInterrupt):
        system.send_to_self(signal.SIGINT)


def test_interrupts_are_handled_again_behind_the_block(windows):
    with system.interrupts_blocked():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("windows", [False, True])
def test_a_worker_ends_with_its_parent(windows):
    worker = f"""
import os, sys, time
from pointset.runs import system
system.IS_WINDOWS = {windows}
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


def test_what_the_environment_says_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    system.share_cores(fixed=False)
    assert (system.os.environ["OMP_NUM_THREADS"], system.os.environ["OMP_WAIT_POLICY"]) == ("3", "ACTIVE")
