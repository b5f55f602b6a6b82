"""All that differs between operating systems. Windows has not been tried: its branches follow the documentation."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IS_WINDOWS = sys.platform == "win32"


def sync(path: Path) -> None:
    """Flush one file, or the directory entry of a folder, to the disk."""
    if IS_WINDOWS and path.is_dir():  # cannot be opened there
        return
    descriptor = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)  # there only what can be written is flushed
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_running(process: int) -> bool:
    """Whether a process with this number runs."""
    if IS_WINDOWS:  # where `os.kill` ends the process
        import psutil

        return psutil.pid_exists(process)
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


def send_to_self(number: int) -> None:
    """Send a signal to this process, so that its main thread handles it."""
    if IS_WINDOWS:  # where `os.kill` ends the process
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Make processes that start in this block ignore Ctrl-C, which a terminal sends to all: this process ends them."""
    if IS_WINDOWS:
        yield
        return
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
        if IS_WINDOWS:  # where the number of the parent stays
            import psutil

            with suppress(psutil.NoSuchProcess):
                psutil.Process(parent).wait()
        while not IS_WINDOWS and os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
