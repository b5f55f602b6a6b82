"""Entry point of the command line: process settings, signals, errors and exit codes. It imports only fast modules."""

import contextlib
import ctypes
import os
import re
import signal
import sys
from collections.abc import Sequence

from pointset.errors import REPEATED, PointsetError, one_line, quoted

LONGEST_MESSAGE = 5000
"""Maximum number of characters of an error message: enough for the longest path and a sentence."""
ENDINGS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
RESUMABLE = ("train", "compare")
"""Commands that continue where they were interrupted when they are run again."""
MALLOC = {"TRIM": (-1, 2**30), "MMAP": (-3, 2**25)}
"""Options of mallopt(3), in bytes: the free memory that glibc keeps, and the block size from which it calls mmap."""
MEMORY = re.compile("allocate memory|not enough memory|out of memory", re.I)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 for success, 2 for errors that the user can correct, 1 for other errors, 130 after Ctrl-C and 143
    after SIGTERM.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    if arguments is None:
        resumable = tokens[:1] and tokens[0] in RESUMABLE
        configure_process(fixed_threads=bool(resumable))
        end_at_signals("; run the same command again to continue" if resumable else "")
    try:
        from pointset.commands.app import run  # here, so that signals are handled while it is imported

        run(tokens)
        sys.stdout.flush()
    except BaseException as error:
        if debug or isinstance(error, SystemExit):
            raise
        sys.exit(report(error))


def configure_process(fixed_threads: bool) -> None:
    """Set OpenMP variables and options of glibc's allocator before torch is imported, unless the user has set them.

    Idle OpenMP threads sleep instead of spinning, which halves the CPU time of `classify` on a shared machine. Unless
    `fixed_threads` is True, there is one thread per idle core. `fixed_threads` is True for resumable commands, because
    floating-point sums depend on the number of threads. The process keeps freed memory, which saves a tenth of the time
    of a training step at width 64 to 128, and more in predictions.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # GNU's OpenMP, of torch for Linux
    os.environ.setdefault("KMP_BLOCKTIME", "0")  # LLVM's and Intel's
    if not fixed_threads and hasattr(os, "getloadavg"):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores - round(os.getloadavg()[0]))))
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None  # glibc only
    for name, (option, size) in MALLOC.items():
        os.environ.setdefault(f"MALLOC_{name}_THRESHOLD_", str(size))  # for worker processes
        if mallopt:
            mallopt(option, size)


def end_at_signals(hint: str) -> None:
    """At SIGINT and SIGTERM, print one line, and end the process and its workers. Files are complete at any time."""

    def end(number: int, _: object) -> None:
        with contextlib.suppress(OSError):  # stderr may be closed
            os.write(2, f"pointset: {ENDINGS[signal.Signals(number)]}{hint}\n".encode())
        os._exit(128 + number)

    for number in ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, end)


def report(error: BaseException) -> int:
    """Print an error as one line on stderr, and return the exit code."""
    if isinstance(error, BrokenPipeError):  # the program that reads the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would print an error at exit
        return 141
    code, message = 2, one_line(error, LONGEST_MESSAGE)
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{quoted(str(error.filename), REPEATED)} cannot be used ({error.strerror}): use another path"
    elif of_memory(error):
        message = "not enough memory: use fewer points or shapes at once, or a smaller model"
    elif not isinstance(error, PointsetError | OSError):
        code, message = 1, f"unexpected {type(error).__name__}: {one_line(error, REPEATED)} (--debug shows more)"
    print(f"pointset: {message}", file=sys.stderr)
    return code


def of_memory(error: BaseException) -> bool:
    """Return True for an error because of too little memory: a MemoryError, or a RuntimeError of torch."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(MEMORY.search(str(error))))
