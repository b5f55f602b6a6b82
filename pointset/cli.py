"""The command line's entry: errors, signals and exit codes. Nothing heavy is imported until a command needs it."""

import signal
import sys

IS_PROGRAM = "".join(sys.argv[:1]).endswith(("/pointset", "/pointset/__main__.py"))
if IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `main`, Ctrl-C ends the process without a traceback

import contextlib
import errno
import io
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.system import share_cores

LONGEST_MESSAGE = 5000
"""Characters of a message: the longest path that there is, and a sentence."""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
SIGNAL_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
RESUMABLE = (["train"], ["compare"])
"""Commands that continue the work of an earlier call."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 for success, 2 for errors that the user can correct, 1 for our own, 130 after Ctrl-C and 143 after
    SIGTERM.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    share_cores(fixed=any(tokens[: len(words)] == words for words in RESUMABLE))
    with Interruptions(tokens, restore=arguments is not None) as interruptions:
        try:
            from pointset.commands.app import run  # here, so that Ctrl-C is handled while it is imported

            run(tokens)
            sys.stdout.flush()
        except BaseException as error:
            if interruptions.received is None and (debug or isinstance(error, SystemExit)):
                raise
            code = _end(error, interruptions)
            if interruptions.received is not None and arguments is None:
                os._exit(code)  # an orderly end can take seconds
            sys.exit(code)


class Interrupted(KeyboardInterrupt):
    """After a plain KeyboardInterrupt that has crossed C code, Python ends by the signal, whatever its exit code."""


class Interruptions:
    """Handles SIGINT and SIGTERM: the first raises Interrupted wherever the command is; a second ends the process.

    Worker processes end with this one (see `pointset.runs.workers`), and files are complete at every moment, so that an
    immediate end loses nothing.
    """

    def __init__(self, tokens: list[str], restore: bool) -> None:
        self.received: signal.Signals | None = None
        self.stderr = sys.stderr
        continued = any(tokens[: len(words)] == words for words in RESUMABLE)
        self._hint = "; run the same command again to continue" * continued
        self._printed = False
        self._restore = restore  # not in a process that ends
        self._before: dict[signal.Signals, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> "Interruptions":
        for number in CODES:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                self._before[number] = signal.signal(number, self._handle)
        sys.unraisablehook = self._repeat
        return self

    def __exit__(self, *_: object) -> None:
        if self._restore:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            sys.unraisablehook, sys.stderr = self._hook, self.stderr

    @property
    def code(self) -> int:
        """The exit code of a process that ends by the signal."""
        return CODES[self.received or signal.SIGINT]

    def message(self) -> str:
        """The message, the first time."""
        before, self._printed = self._printed, True
        return "" if before else f"pointset: {SIGNAL_WORDS[self.received or signal.SIGINT]}{self._hint}\n"

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            sys.stderr = io.StringIO()  # threads that lose their workers would print tracebacks and warnings
            raise Interrupted
        with contextlib.suppress(OSError):
            os.write(2, self.message().encode())  # `print` may be in the middle of a line
        os._exit(self.code)

    def _repeat(self, lost: Any) -> None:
        """Send the signal again if Python has dropped its exception, as it does in finalisers."""
        if self.received is None or not issubclass(lost.exc_type, KeyboardInterrupt):
            self._hook(lost)
            return
        number, self.received = self.received, None
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()


def _end(error: BaseException, interruptions: Interruptions) -> int:
    """Print in one line why the command ends, and return the exit code."""
    # After a signal, every error comes from it: libraries convert KeyboardInterrupt.
    if interruptions.received is not None or isinstance(error, KeyboardInterrupt):
        with contextlib.suppress(OSError):  # the reader may be gone, and workers end only when this process does
            print(interruptions.message(), end="", file=interruptions.stderr, flush=True)
        return interruptions.code
    if isinstance(error, BrokenPipeError):  # the reader of our output has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain at exit
        return 141
    code, message = 2, one_line(error, LONGEST_MESSAGE)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        from pointset.runs.atomic import why_not

        name = str(error.filename)
        shown = quoted(name) if error.errno == errno.ENAMETOOLONG else name
        message = one_line(f"{shown} cannot be used ({why_not(Path(name), error)}): use another path", LONGEST_MESSAGE)
    elif of_memory(error):
        size = re.search(r"allocate ([\d.]+ ?(?:bytes|[KMGTPE]i?B))", str(error))
        at_once = f" ({size[1]} at once)" if size else ""
        message = f"not enough memory{at_once}: use fewer points or shapes at once, or a smaller model"
    elif not isinstance(error, PointsetError | OSError):
        code, message = 1, f"unexpected {type(error).__name__}: {one_line(error, REPEATED)} (--debug shows more)"
    print(f"pointset: {message}", file=sys.stderr)
    return code


def of_memory(error: BaseException) -> bool:
    """True for an error of lacking memory; torch has its own, and another one for a GPU."""
    words = re.compile("allocate memory|not enough memory|out of memory", re.I)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(words.search(str(error))))
