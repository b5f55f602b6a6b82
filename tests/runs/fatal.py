"""A run that ends its process, in a module of its own that other processes can import."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pointset.comparison.runs import Run


@dataclass(frozen=True)
class FatalRun(Run):
    """Kills the worker process that it runs in, as the kernel does when memory is short."""

    maker: int = field(default_factory=os.getpid)
    """The process that hands it out, which takes the folder as well: to say what became of the run."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        with super().locked():
            if os.getpid() != self.maker:
                os.kill(os.getpid(), signal.SIGKILL)
            yield
