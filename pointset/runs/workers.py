"""Worker processes on this machine or on a cluster, through joblib."""

import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from pointset.configuration import Cores, check
from pointset.errors import REPEATED, PointsetError, one_line, quoted

MACHINE_SECONDS, DASK_SECONDS = 1.5, 5
"""Seconds within which the machine of a dask scheduler, and then the scheduler, must answer."""


@dataclass(frozen=True)
class Workers:
    """Processes that do the work, on this machine or a cluster. The fields are flags of the commands."""

    count: Annotated[Cores | None, Parameter(name="--workers")] = None
    """Number of parallel processes; results do not depend on it. Default: one per core, or all workers of a
    cluster."""
    scheduler: str | None = None
    """Address of a dask scheduler, such as tcp://host:8786. Its cluster then does the work instead of this machine, and
    needs access to the same folders."""

    def __post_init__(self) -> None:
        check("workers", self.count, Cores | None)

    def check(self) -> None:
        """Raise a PointsetError unless the scheduler of a cluster answers; called before other work starts."""
        with _cluster(self.scheduler) if self.scheduler else nullcontext():
            pass

    @property
    def cores(self) -> int:
        """The number of processes to start on this machine."""
        from joblib import cpu_count

        return int(self.count or cpu_count())

    def at_once(self, jobs: int, threads: int = 1) -> int:
        """Return the number of jobs, with `threads` threads each, to run in parallel on the cores of this process."""
        return max(1, min(self.count or self.cores // threads, jobs))


def run_in_workers(
    tasks: Iterable[Any], workers: Workers, count: int, threads: int = 1, *, batch: int = 1
) -> Iterator[Any]:
    """Yield results of `delayed` tasks in order of completion; each worker process gets `batch` tasks at a time.

    The worker processes stop working when this process or the iterator ends.
    """
    from joblib import Parallel

    with _backend(workers, count, threads):
        parallel = Parallel(return_as="generator_unordered", batch_size=batch)
        with nullcontext() if workers.scheduler else interrupts_blocked():
            results = parallel(tasks)
        try:
            yield from results
        finally:
            with warnings.catch_warnings():  # closed here, and not at some later garbage collection
                warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)  # intended
                results.close()


@contextmanager
def _backend(workers: Workers, count: int, threads: int) -> Iterator[None]:
    """Make joblib use `workers` inside this block, and connect to their cluster if there is one."""
    from joblib import parallel_config

    if workers.scheduler:
        with _cluster(workers.scheduler) as client, parallel_config("dask", n_jobs=workers.count or -1, client=client):
            yield
        return
    ending = {"initializer": end_with, "initargs": (os.getpid(),)}
    with (
        warnings.catch_warnings(),
        _cleaned_quietly(),
        parallel_config("loky", n_jobs=count, inner_max_num_threads=threads, **ending),
    ):
        # joblib replaces a worker whose memory has grown by 300 MB, for example by importing torch, and warns of a
        # memory leak in the thread that starts the next worker; as an error, this would make joblib hang.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        yield


@contextmanager
def _cleaned_quietly() -> Iterator[None]:
    """Silence joblib's resource tracker, which reports on stderr the files that it removes after an interrupt."""
    name, before = "PYTHONWARNINGS", os.environ.get("PYTHONWARNINGS")
    os.environ[name] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside this block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _cluster(scheduler: str) -> Iterator[Any]:
    """Yield a client of the cluster."""
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise PointsetError("a scheduler of dask needs distributed: run `pip install distributed`") from error
    try:
        with suppress(ValueError):  # ValueError: not a socket; distributed would retry a closed one for a long time
            address = distributed.comm.get_address_host_port(scheduler)
            socket.create_connection(address, MACHINE_SECONDS).close()
        client = distributed.Client(scheduler, timeout=DASK_SECONDS, set_as_default=False)
    except Exception as error:  # of many types if the server is not a scheduler
        reason = one_line(error, REPEATED)
        raise PointsetError(f"no dask scheduler answers at {quoted(scheduler)}: {reason}") from error
    with client:
        yield client


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Make processes that start in this block ignore Ctrl-C, which a terminal sends to all. This process ends them."""
    from multiprocessing import resource_tracker  # not at the top, so that the command line starts fast

    resource_tracker.ensure_running()  # a tracker that starts inside the block would unblock the signal
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
