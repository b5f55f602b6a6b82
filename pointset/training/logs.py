"""Histories of runs in TensorBoard, MLflow and Weights & Biases: `fit(..., run=run, on_epoch=HistoryLog(run))`."""

import hashlib
import logging
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pointset.errors import REPEATED, PointsetError, one_line, require_extra
from pointset.training.checkpoints import EpochRow, RunFolder

Tracker = Literal["tensorboard", "mlflow", "wandb"]
TENSORBOARD_FILES = "events.out.tfevents.*"
PROJECT = "pointset"
"""The experiment of MLflow, and the project of Weights & Biases unless WANDB_PROJECT names another."""
Write = Callable[[EpochRow, float], None]
"""Writes the numbers of an epoch, with the time at which it ended."""
EpochLog = tuple[Write, Callable[[], Any]]
"""Writes epochs, and ends the log."""


class HistoryLog:
    """Writes each epoch of a run to a tracker of experiments, and the description of the run where it takes one.

    If a run is resumed, the log has every epoch once, including epochs that were trained without a log. The trackers'
    own variables apply: MLFLOW_TRACKING_URI (without it, mlflow.db in the working directory), WANDB_MODE=offline, ...

    Args:
        run: folder of the run.
        tracker: "tensorboard" writes into that folder, "mlflow" to a server or a database, "wandb" to its server, or
            with WANDB_MODE=offline into the folder.

    Raises:
        PointsetError: the package of the tracker is not installed.
    """

    def __init__(self, run: str | Path, tracker: Tracker = "tensorboard") -> None:
        require_extra(tracker, f"a log for {tracker}", tracker)
        self._run, self._tracker = Path(run), tracker
        self._writer: EpochLog | None = None

    def __call__(self, row: EpochRow) -> None:
        """Write the row of an epoch, which the run's history does not contain yet."""
        with _named(self._tracker):
            write, _ = self._begun(RunFolder(self._run).history() if row["epoch"] > 1 else [])
            write(row, time.time())

    def close(self, history: Sequence[EpochRow]) -> None:
        """End the log of a run; write it if the run was finished before."""
        with _named(self._tracker):
            _, close = self._begun(history)
            close()

    def _begun(self, history: Sequence[EpochRow]) -> EpochLog:
        """The writer; it is made, and has these rows, when it is first needed."""
        if self._writer is None:
            self._writer = write, _ = TRACKERS[self._tracker](self._run)
            when = time.time() - sum(row["seconds"] for row in history)  # as if there had been no pause between them
            for row in history:
                when += row["seconds"]
                write(row, when)
        return self._writer


def _tensorboard(run: Path) -> EpochLog:
    """New files in place of those of an earlier call; an open TensorBoard discards what it has read of them."""
    from torch.utils.tensorboard import SummaryWriter

    for file in run.glob(TENSORBOARD_FILES):
        file.unlink()
    writer: Any = SummaryWriter(str(run), purge_step=1)

    def write(row: EpochRow, when: float) -> None:
        for name, value in _numbers(row).items():
            writer.add_scalar(name, value, row["epoch"], walltime=when)
        writer.flush()

    return write, writer.close


def _mlflow(run: Path) -> EpochLog:
    """The run with this one's tag, which has some epochs already, or a new one."""
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client, tag = MlflowClient(), _identity(run)
    experiment = client.get_experiment_by_name(PROJECT)
    number = client.create_experiment(PROJECT) if experiment is None else experiment.experiment_id
    earlier = client.search_runs([number], f"tags.`pointset.run` = '{tag}'")
    info = earlier[0].info if earlier else client.create_run(number, run_name=run.name, tags={"pointset.run": tag}).info
    options = [Param(name, str(value)[:REPEATED]) for name, value in _options(run).items()]
    client.log_batch(info.run_id, params=[] if earlier else options[:100])  # as many as it takes at once
    done = max((metric.step for metric in client.get_metric_history(info.run_id, "seconds")), default=0)

    def write(row: EpochRow, when: float) -> None:
        if row["epoch"] > done:
            numbers = [Metric(name, value, round(when * 1000), row["epoch"]) for name, value in _numbers(row).items()]
            client.log_batch(info.run_id, metrics=numbers)

    return write, lambda: client.set_terminated(info.run_id)


def _wandb(run: Path) -> EpochLog:
    """This folder's run on a server, which skips epochs that it has; offline, new files in place of earlier ones."""
    import wandb

    key = _identity(run)
    for folder in (run / "wandb").glob(f"offline-run-*-{key}"):
        shutil.rmtree(folder)
    online = os.environ.get("WANDB_MODE") != "offline"
    tracked = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        id=key,
        name=run.name,
        dir=run,
        config=_options(run),
        resume="allow" if online else None,
        reinit="create_new",
        settings=wandb.Settings(silent=True, console="off", disable_git=True),
    )
    return lambda row, when: tracked.log(_numbers(row), step=row["epoch"]), tracked.finish


TRACKERS: dict[Tracker, Callable[[Path], EpochLog]] = {"tensorboard": _tensorboard, "mlflow": _mlflow, "wandb": _wandb}


def _numbers(row: EpochRow) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if name != "epoch"}


def _identity(run: Path) -> str:
    """A name for a folder that another call finds again."""
    return hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]


def _options(run: Path) -> dict[str, Any]:
    """What the run was made with, such as {"recipe.epochs": 50}."""
    description = RunFolder(run).description()
    tables = {part: description.get(part, {}) for part in ("model", "recipe", "data")}
    tables["options"] = tables["model"].get("options", {})
    values = {f"{part}.{name}": value for part, table in tables.items() for name, value in table.items()}
    return {name: value for name, value in values.items() if isinstance(value, str | int | float)}


@contextmanager
def _named(tracker: str) -> Iterator[None]:
    """Name the tracker in its errors, and do not repeat its warnings about the libraries that it uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (PointsetError, OSError):
            raise
        except Exception as error:
            raise PointsetError(f"{tracker} cannot log the run: {one_line(error, REPEATED)}") from error
