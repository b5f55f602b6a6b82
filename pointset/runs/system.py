"""Flushed files, and signals and ends of processes, on Linux and macOS."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync(path: Path) -> None:
    """Flush one file, or the directory entry of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Make processes that start in this block ignore Ctrl-C, which a terminal sends to all: this process ends them."""
    from multiprocessing import resource_tracker  # here, for the start of the command line

    resource_tracker.ensure_running()  # started inside the block, it would unblock the signal
    # New processes inherit the mask, as does joblib's thread that starts more of them later.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(parent: int) -> None:
    """End this process when its parent ends; otherwise the worker of a killed parent would run or wait forever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
