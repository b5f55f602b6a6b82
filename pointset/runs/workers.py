"""Worker processes on this machine or on a cluster, through joblib."""

import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Literal

from pointset.configuration import Cores, check
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.system import end_with, interrupts_blocked

Backend = Literal["loky", "dask"]
BACKENDS: tuple[Backend, ...] = ("loky", "dask")
MACHINE_SECONDS, DASK_SECONDS = 1.5, 5
"""Times in which the machine of a dask scheduler, and then the scheduler, must answer."""


@dataclass(frozen=True)
class Workers:
    """Where work is executed; results do not depend on it."""

    count: int | None = None
    """Number of worker processes; None means one per core, or all workers of a cluster."""
    backend: str = "loky"
    """"loky" (processes on this machine) or "dask" (a cluster whose workers can access the same files)."""
    scheduler: str | None = None
    """The address of the cluster, such as tcp://host:8786; None means the dask client of this process."""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise PointsetError(f"backend must be one of {', '.join(BACKENDS)}, got {quoted(self.backend)}")
        check("workers", self.count, Cores | None)
        if self.scheduler and self.backend == "loky":
            raise PointsetError(f"scheduler={quoted(self.scheduler)} is the address of a cluster: set backend to dask")

    def check(self) -> None:
        """Raise a PointsetError unless the scheduler of a cluster answers; called before other work starts."""
        with _cluster(self) if self.backend == "dask" else nullcontext():
            pass

    @property
    def cores(self) -> int:
        """The number of processes to start on this machine."""
        from joblib import cpu_count

        return int(self.count or cpu_count())

    def at_once(self, jobs: int, threads: int = 1) -> int:
        """The number of jobs, with `threads` threads each, to run in parallel on the cores of this process."""
        return max(1, min(self.count or self.cores // threads, jobs))


def run_in_workers(
    tasks: Iterable[Any], workers: Workers, count: int, threads: int = 1, *, ordered: bool = False
) -> Iterator[Any]:
    """Yield the results of `delayed` tasks from worker processes, which end with this one or with the iterator."""
    from joblib import Parallel

    kind = "generator" if ordered else "generator_unordered"
    with _backend(workers, count, threads):
        parallel = Parallel(return_as=kind, batch_size=1)
        with interrupts_blocked() if workers.backend == "loky" else nullcontext():
            results = parallel(tasks)
        try:
            yield from results
        finally:
            with warnings.catch_warnings():  # closed here, and not at some later garbage collection
                warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)  # intended
                results.close()


@contextmanager
def _backend(workers: Workers, count: int, threads: int) -> Iterator[None]:
    """Make joblib use the backend of the workers inside this block; connects to the cluster if there is one."""
    from joblib import parallel_config

    if workers.backend != "loky":
        with _cluster(workers) as client, parallel_config("dask", n_jobs=workers.count or -1, client=client):
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
    """Silence joblib's resource tracker, which reports on stderr what it removes after an interrupted command."""
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
def _cluster(workers: Workers) -> Iterator[Any]:
    """A client of the cluster."""
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise PointsetError("backend=dask needs distributed: run `pip install distributed`") from error
    client: Any
    try:
        if workers.scheduler:
            with suppress(ValueError):  # not an address of a socket; distributed tries a closed one again and again
                address = distributed.comm.get_address_host_port(workers.scheduler)
                socket.create_connection(address, MACHINE_SECONDS).close()
            client = distributed.Client(workers.scheduler, timeout=DASK_SECONDS, set_as_default=False)
        else:
            client = nullcontext(distributed.get_client())  # that of the caller, which stays open
    except Exception as error:  # of many types, if a server answers that is not a scheduler
        reason = f"no dask scheduler answers at {quoted(workers.scheduler)}: {one_line(error, REPEATED)}"
        missing = "backend=dask needs scheduler=ADDRESS, such as tcp://localhost:8786, where `dask scheduler` listens"
        raise PointsetError(reason if workers.scheduler else missing) from error
    with client as connected:
        yield connected
