"""Commands as processes: forked from one that has imported the libraries, so that moments fall into the work."""

import atexit
import contextlib
import http.server
import importlib
import os
import pkgutil
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

import pointset
from pointset.cli import main
from pointset.data.catalogue import cards

for found in pkgutil.walk_packages(pointset.__path__, "pointset."):
    importlib.import_module(found.name)

GRACE = 20.0
"""Seconds in which the workers of a killed process have to end."""


@dataclass
class Ended:
    """How a command ended."""

    code: int
    said: str
    seconds: float


class Started:
    """A command that has been started, in a session of its own."""

    def __init__(self, arguments: tuple[str, ...], folder: Path, card_folder: Path) -> None:
        self.start = time.monotonic()
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(arguments, folder, card_folder, self.output.fileno())

    def kill(self) -> None:
        """As the kernel does when memory is short: this process only, not its workers."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """Until it has ended."""
        _, status = os.waitpid(self.pid, 0)
        self.output.seek(0)
        said = self.output.read().decode(errors="replace")
        self.output.close()
        return Ended(os.waitstatus_to_exitcode(status), said, time.monotonic() - self.start)

    def left(self) -> list[int]:
        """Processes of its session that are there after a while."""
        end = time.monotonic() + GRACE
        while (found := _session(self.pid)) and time.monotonic() < end:
            time.sleep(0.2)
        return found


def _become(arguments: tuple[str, ...], folder: Path, card_folder: Path, output: int) -> None:
    """Turn this fork into the command."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    os.environ["POINTSET_HOME"] = str(folder / "home")
    cards.cards_folder = lambda: card_folder
    sys.argv = ["pointset", *arguments]
    code: object = 0
    try:
        main()
    except SystemExit as left:
        code = left.code
    threading._shutdown()  # type: ignore[attr-defined]  # what Python does at its end, and a fork does not
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def _session(leader: int) -> list[int]:
    found = []
    for process in psutil.process_iter(["status"]):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def serve(content: Callable[[str], bytes], pause: float) -> tuple[str, int]:
    """A server of one file that can go on in its middle, in a fork; returns its address and its process."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(data) - start))
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            for at in range(start, len(data), len(data) // 20):
                self.wfile.write(data[at : at + len(data) // 20])
                time.sleep(pause / 20)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the other side was killed
                super().handle()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    data = content(url)
    if (pid := os.fork()) == 0:
        try:
            server.serve_forever()
        finally:
            os._exit(1)
    server.socket.close()
    return url, pid
