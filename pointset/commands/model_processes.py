"""Processes that hold a trained model and classify for a server: any of them can be killed and replaced."""

import asyncio
import multiprocessing
import os
import queue
import signal
import warnings
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointset.commands.attend import MOST_TO_ASK, live_page, plain_models
from pointset.commands.models import load_model
from pointset.data.axes import UsualUp
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES, suffix_of
from pointset.errors import REPEATED, PointsetError, one_line, quoted

if TYPE_CHECKING:
    import numpy as np

SERVED = (MESH_SUFFIXES | CLOUD_SUFFIXES) - {".dae"}
"""Suffixes of files that are read for strangers; the entities of .dae, which is XML, may expand without limit."""
ZIPPED, MOST_RATIO = (".npz", ".3mf"), 20
"""Suffixes of archives, and the most bytes that they may unpack to for each of their own."""
LOADING = 300.0
"""Most seconds in which a process loads its model."""


class ServedModel:
    """A trained model, and what a server says of files; it lives in a process of its own."""

    def __init__(self, model: str | None) -> None:
        self.trained = load_model(model)
        self.data = self.trained.description["data"]
        try:
            self.plain = plain_models(self.trained)
        except PointsetError:  # a baseline or a mixture, or parts that a page has not
            self.plain = []

    def describe(self) -> dict[str, Any]:
        """The name and the classes of the model."""
        return {"model": self.trained.name, "classes": self.data["classes"], "points": self.data["points"]}

    def classify(self, path: Path, name: str, up: UsualUp, keep_outliers: bool) -> "tuple[dict[str, Any], Any]":
        """What `pointset classify` says of a file, and the points of its live page, or None without a page."""
        from pointset.data.catalogue.folders import ShapeFile
        from pointset.data.loading import load_shape_like
        from pointset.evaluation.files import Failure, classify_files

        with _calling(path, name), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            check_alone(path)
            shapes = [ShapeFile(path, name)]
            (answer,) = classify_files(self.trained.network, self.data, shapes, up=up, keep_outliers=keep_outliers)
            if isinstance(answer, Failure):
                raise PointsetError(answer.reason)
            messages = list(dict.fromkeys(one_line(warning.message) for warning in caught))
            cloud = None
            if self.plain:
                points = max(self.data["points"], MOST_TO_ASK)
                cloud = load_shape_like(self.data, path, points=points, up=up, keep_outliers=keep_outliers).raw
        content = {key: value for key, value in answer.as_dict().items() if key != "true_class"}
        return content | {"warnings": [message.replace(str(path), name) for message in messages]}, cloud

    def page(self, name: str, cloud: "np.ndarray") -> str:
        """The live page of a cloud that `classify` gave."""
        return live_page(self.plain, name, cloud, self.data["up"]).html


def check_alone(path: Path) -> None:
    """Refuse a file that names other files, or unpacks to far more than its size."""
    suffix = suffix_of(path.name)
    if suffix in (".glb", ".gltf"):
        from pointset.data.readers.mesh_reader import names_of_others

        if names := names_of_others(path):
            raise PointsetError(f"{path}: its numbers are in another file, {quoted(names[0])}: send one .glb file")
    if suffix in ZIPPED and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > MOST_RATIO * path.stat().st_size:
            raise PointsetError(f"{path}: unpacks to {unpacked:,} bytes, more than {MOST_RATIO} times its size")


@contextmanager
def _calling(path: Path, name: str) -> Iterator[None]:
    """Give errors the name of a file that the user knows."""
    try:
        yield
    except (PointsetError, OSError) as error:
        raise PointsetError(one_line(error, 2 * REPEATED).replace(str(path), name)) from error


def _answer(connection: Connection, model: str | None, threads: int) -> None:
    """Load a model, say what it is, and then answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes, and the server ends this one
    import torch

    torch.set_num_threads(threads)
    served = None
    question: tuple[str, tuple[Any, ...]] = "describe", ()
    with suppress(EOFError, OSError):
        while True:
            try:
                served = served or ServedModel(model)
                answer = getattr(served, question[0])(*question[1])
            except PointsetError as error:
                answer = error
            except Exception as error:
                answer = RuntimeError(f"unexpected {type(error).__name__}: {one_line(error, REPEATED)}")
            connection.send(answer)
            question = connection.recv()


class ModelProcesses:
    """Processes with the same model, each of which answers one question at a time.

    Args:
        model: as `--model` names it.
        count: number of processes.
        seconds: longest time of an answer; a process that takes longer is killed, and another one started.
    """

    def __init__(self, model: str | None, count: int, seconds: float) -> None:
        self.model, self.seconds = model, seconds
        self._torch_threads = max(1, (os.cpu_count() or 1) // count)
        self._threads = ThreadPoolExecutor(count)  # as many as processes: none of them waits for a free process
        self._free: queue.Queue[tuple[BaseProcess, Connection]] = queue.Queue()
        self._loading: set[Connection] = set()
        for _ in range(count):
            self._start()

    def describe(self) -> dict[str, Any]:
        """What `ServedModel.describe` says of the model."""
        return self._ask("describe")

    async def ask(self, method: str, *arguments: Any) -> Any:
        """The result of a method of `ServedModel`; the time until a process is free does not count."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, method, *arguments)

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while not self._free.empty():
            self._free.get()[0].kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        connection, other = context.Pipe()
        process = context.Process(target=_answer, args=(other, self.model, self._torch_threads), daemon=True)
        process.start()
        other.close()
        self._loading.add(connection)
        self._free.put((process, connection))

    def _ask(self, method: str, *arguments: Any) -> Any:
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


def _receive(connection: Connection, seconds: float) -> Any:
    if not connection.poll(seconds):
        raise TimeoutError(f"took longer than {seconds:g} seconds")
    return connection.recv()
