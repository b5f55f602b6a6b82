"""Processes that hold an object and answer for its methods, such as a model's: any can be killed and replaced."""

import asyncio
import queue
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

from pointset.errors import REPEATED, PointsetError, one_line

LOADING = 300.0
"""Most seconds in which a process makes its object."""
_held: list[Any] = []
"""In such a process: its object, or the error that came instead."""


class Answering:
    """Processes with the same object, each of which answers one question at a time.

    Args:
        make: makes the object in a process; it is pickled.
        count: number of processes.
        seconds: longest time of an answer; a process that takes longer is killed, and another one started.
    """

    def __init__(self, make: Callable[[], Any], count: int, seconds: float) -> None:
        self.make, self.seconds = make, seconds
        self._threads = ThreadPoolExecutor(count)  # as many as processes: none of them waits for a free process
        self._free: queue.Queue[ProcessPoolExecutor] = queue.Queue()
        for _ in range(count):
            self._free.put(self._start())

    def ask(self, method: str, *arguments: Any) -> Any:
        """The result of a method of the object; errors are those of the method, a TimeoutError or a BrokenExecutor."""
        process = self._free.get()
        try:
            process.submit(int).result(LOADING)
            return process.submit(_answer, method, arguments).result(self.seconds)
        except (TimeoutError, BrokenExecutor):
            _kill(process)
            process = self._start()
            raise
        finally:
            self._free.put(process)

    async def ask_later(self, method: str, *arguments: Any) -> Any:
        """The same, without blocking; the time until a process is free does not count."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, method, *arguments)

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._free.empty():
            _kill(self._free.get())

    def _start(self) -> ProcessPoolExecutor:
        executor = ProcessPoolExecutor(1, get_context("spawn"), _hold, (self.make,))
        executor.submit(int)  # starts the process
        return executor


def _kill(executor: ProcessPoolExecutor) -> None:
    for process in list((executor._processes or {}).values()):  # `kill_workers` of Python 3.14
        process.kill()
    executor.shutdown(wait=False)


def _hold(make: Callable[[], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes, and the parent ends this one
    try:
        _held.append(make())
    except Exception as error:
        _held.append(error)


def _answer(method: str, arguments: tuple[Any, ...]) -> Any:
    try:
        if isinstance(_held[0], Exception):
            raise _held[0]
        return getattr(_held[0], method)(*arguments)
    except PointsetError:
        raise
    except Exception as error:
        raise RuntimeError(f"unexpected {type(error).__name__}: {one_line(error, REPEATED)}") from None
