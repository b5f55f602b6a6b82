"""The history of a run for TensorBoard."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pointset.errors import PointsetError
from pointset.training.checkpoints import RunFolder

FILES = "events.out.tfevents.*"


class EventLog:
    """Writes rows of a history into event files in the run's folder: `fit(..., run=run, on_epoch=EventLog(run))`.

    If a run is resumed, the files are rewritten from its history, so that they contain every epoch once, including
    epochs that were trained without a log. An open TensorBoard updates too.
    """

    def __init__(self, run: str | Path) -> None:
        """Import the package.

        Raises:
            PointsetError: it is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PointsetError(
                "a log for TensorBoard needs the package tensorboard: pip install tensorboard"
            ) from error
        self._make = SummaryWriter
        self._folder = Path(run)
        self._writer: Any = None

    def __call__(self, row: dict[str, Any]) -> None:
        """Write the row of an epoch, which the run's history does not contain yet."""
        if self._writer is None:
            before = RunFolder(self._folder).history() if row["epoch"] > 1 else []
            self._begin(before)
        self._write(row, time.time())

    def close(self, history: Sequence[dict[str, Any]]) -> None:
        """End the log of a run; write it if the run was finished before."""
        if self._writer is None:
            self._begin(history)
        self._writer.close()

    def _begin(self, history: Sequence[dict[str, Any]]) -> None:
        for file in self._folder.glob(FILES):
            file.unlink()
        self._writer = self._make(str(self._folder), purge_step=1)  # discards what a TensorBoard has read of the others
        when = time.time() - sum(row["seconds"] for row in history)  # as if there had been no pause between the epochs
        for row in history:
            when += row["seconds"]
            self._write(row, when)

    def _write(self, row: dict[str, Any], when: float) -> None:
        for name, value in row.items():
            if name != "epoch":
                self._writer.add_scalar(name, float(value), row["epoch"], walltime=when)
        self._writer.flush()
