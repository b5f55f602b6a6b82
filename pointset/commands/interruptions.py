"""Ctrl-C and SIGTERM: one line, and the exit code that shells have for them."""

import contextlib
import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
GO_ON = (["train"], ["compare"], ["task"], ["data", "build"], ["data", "fetch"])
"""Commands that find what an earlier one has done."""
LOOK = {"--status", "--dry-run"}


class Interrupted(KeyboardInterrupt):
    """After a plain KeyboardInterrupt that has crossed C code, Python ends by the signal, whatever its exit code."""


class Interruptions:
    """The first signal raises Interrupted wherever the command is; a second one ends the process at once.

    Worker processes end with this one (see `pointset.runs.workers`), and files are whole at every moment, so that
    ending at once loses no more than ending with care.
    """

    def __init__(self, tokens: list[str]) -> None:
        """Of a command line."""
        self.received: signal.Signals | None = None
        self.told = False
        goes_on = any(tokens[: len(words)] == words for words in GO_ON) and not LOOK & set(tokens)
        self.hint = "; run the same command again to continue" * goes_on
        self.before: dict[signal.Signals, Any] = {}
        self.hook = sys.unraisablehook
        self.stderr = sys.stderr

    def listen(self) -> None:
        """From now on; what the shell has told this process to ignore, as nohup does, stays ignored."""
        for number in CODES:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self.before[number] = signal.signal(number, self._hear)
        self.hook, sys.unraisablehook = sys.unraisablehook, self._hear_again

    def stop_listening(self) -> None:
        """As it was before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self.hook
        sys.stderr = self.stderr

    @property
    def code(self) -> int:
        """Of a process that ends for the signal."""
        return CODES[self.received or signal.SIGINT]

    def message(self) -> str:
        """What there is to say, once."""
        before, self.told = self.told, True
        return "" if before else f"pointset: {WORDS[self.received or signal.SIGINT]}{self.hint}\n"

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            sys.stderr = io.StringIO()  # threads that lose their workers would print tracebacks and warnings
            raise Interrupted
        with contextlib.suppress(OSError):
            os.write(2, self.message().encode())  # print may be in the middle of a line already
        os._exit(self.code)

    def _hear_again(self, lost: Any) -> None:
        """Python drops what is raised in a finaliser: send the signal once more, a moment later."""
        if self.received is None or not issubclass(lost.exc_type, KeyboardInterrupt):
            self.hook(lost)
            return
        number, self.received = self.received, None
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
