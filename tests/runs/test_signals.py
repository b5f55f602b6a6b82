"""Ctrl-C and SIGTERM, sent to real processes: one line, the exit code of the shell, and no processes left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trimesh

START = [sys.executable, "-m", "pointset.cli"]
GOES_ON = "; run the same command again to continue\n"
SETS = ["--points", "24", "--dim", "16", "--epochs", "400"]
COMPARED = [*["--models", "rff-max", "--out", "out", "--workers", "2"], *SETS]


@pytest.fixture
def started(tmp_path):
    """Starts commands, each in its own session, and ends their remaining processes."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str, path: str = "") -> subprocess.Popen[str]:
        env = {**os.environ, "POINTSET_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (path, str(Path(__file__).parents[2]))))
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


@pytest.fixture(scope="module")
def meshes_folder(tmp_path_factory):
    """More meshes than can be sampled before the signal arrives."""
    folder = tmp_path_factory.mktemp("meshes")
    for split in ("train", "test"):
        for kind in ("ball", "egg"):
            (folder / kind / split).mkdir(parents=True)
            for number in range(100):
                trimesh.creation.icosphere(subdivisions=1).export(folder / kind / split / f"{kind}_{number}.off")
    return folder


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
    ("command", "number", "closed"),
    [
        ("train", signal.SIGINT, False),
        ("train", signal.SIGTERM, False),
        ("compare", signal.SIGINT, False),
        ("compare", signal.SIGTERM, True),
    ],
)
def test_in_the_middle_of_a_command(command, number, closed, started, clouds_folder, tmp_path):
    """Its output may be closed, as if the reader had ended; its workers must end too."""
    options, begun = {
        "train": (["rff-max", "--data", str(clouds_folder), "--run", "out", *SETS], "out/history.jsonl"),
        "compare": ([*COMPARED, "--data", str(clouds_folder)], "out/runs/*/history.jsonl"),
    }[command]
    process = started(*command.split(), *options)
    wait_for(lambda: any(tmp_path.glob(begun)), process)
    if closed:
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
