"""A run that ends its process; a separate module, so that worker processes can import it."""

import os
import signal
from dataclasses import dataclass

from pointset.comparison.runs import Run


@dataclass(frozen=True)
class FatalRun(Run):
    """Kills the process in which it runs, like the out-of-memory killer."""

    def perform(self) -> Run:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process does nothing more")
