"""What processes ask of the system: flushed files, signals, free cores, memory; as Linux and macOS have it."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of mallopt(3)."""
KEPT, KEPT_BEFORE = 2**30, 2**25
"""Bytes, above which memory is given back; the most that mallopt(3) promises to take for M_MMAP_THRESHOLD."""


def sync(path: Path) -> None:
    """Flush one file, or the directory entry of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_running(process: int) -> bool:
    """Whether a process with this number runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # a process of another user; a number that is too large
        pass
    return True


def share_cores(fixed: bool) -> None:
    """Let idle threads of OpenMP sleep in place of spinning and, unless `fixed`, take only cores that are free.

    Has no effect once torch is imported, and leaves what the environment says already. Spinning threads doubled the
    processor time of `pointset classify FOLDER` on a machine with other work. `fixed` is for what has to give the same
    bits when it goes on: sums depend on the number of threads.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # GNU's OpenMP, of torch for Linux
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # LLVM's and Intel's
    if not fixed and hasattr(os, "getloadavg"):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores - round(os.getloadavg()[0]))))


def keep_freed_memory() -> None:
    """Let glibc keep the memory of freed tensors, which it otherwise gives back, to fault its pages in again.

    A training step of width 64 to 128 on 180 points takes a tenth less processor time, predictions of 1,024 points by
    ISABs a quarter; results and the peak of memory stay.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None  # glibc's alone
    if mallopt is not None and any(mallopt(M_MMAP_THRESHOLD, size) for size in (KEPT, KEPT_BEFORE)):
        mallopt(M_TRIM_THRESHOLD, KEPT)


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
