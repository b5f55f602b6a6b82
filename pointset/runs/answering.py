"""Processes that hold an object and answer for its methods, such as a model's: any can be killed and replaced."""

import asyncio
import multiprocessing
import queue
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from pointset.errors import REPEATED, PointsetError, one_line

LOADING = 300.0
"""Most seconds in which a process makes its object."""


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
        self._free: queue.Queue[tuple[BaseProcess, Connection]] = queue.Queue()
        self._loading: set[Connection] = set()
        for _ in range(count):
            self._start()

    def ask(self, method: str, *arguments: Any) -> Any:
        """The result of a method of the object; errors are those of the method, or a TimeoutError."""
        process, connection = self._free.get()
        try:
            if connection in self._loading:
                _receive(connection, LOADING)
                self._loading.discard(connection)
            connection.send((method, arguments))
            answer = _receive(connection, self.seconds)
        except (TimeoutError, EOFError, OSError):
            process.kill()
            process.join()
            connection.close()
            self._start()
            raise
        self._free.put((process, connection))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_later(self, method: str, *arguments: Any) -> Any:
        """The same, without blocking; the time until a process is free does not count."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, method, *arguments)

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._free.empty():
            self._free.get()[0].kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        connection, other = context.Pipe()
        process = context.Process(target=_answer, args=(other, self.make), daemon=True)
        process.start()
        other.close()
        self._loading.add(connection)
        self._free.put((process, connection))


def _answer(connection: Connection, make: Callable[[], Any]) -> None:
    """Make the object, say that it is there, and then answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes, and the parent ends this one
    held: Any = None
    question: tuple[str, tuple[Any, ...]] | None = None
    with suppress(EOFError, OSError):
        while True:
            try:
                held = held or make()
                answer: Any = question and getattr(held, question[0])(*question[1])
            except PointsetError as error:
                answer = error
            except Exception as error:
                answer = RuntimeError(f"unexpected {type(error).__name__}: {one_line(error, REPEATED)}")
            connection.send(answer)
            question = connection.recv()


def _receive(connection: Connection, seconds: float) -> Any:
    if not connection.poll(seconds):
        raise TimeoutError(f"took longer than {seconds:g} seconds")
    return connection.recv()
