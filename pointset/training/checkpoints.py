"""Runs on disk: a folder that is complete at every moment, also if the process is killed.

    run.json            the description of the run: model, recipe, data, versions (written first)
    history.jsonl       one line per finished epoch
    checkpoint-0007/    everything needed to continue after epoch 7 (one folder at a time)
    model.safetensors   the trained weights (written last: it marks the run as finished)

Files are written beside their place, flushed to the disk and renamed into it. The folder, and each checkpoint, has a
SHA256SUMS of them: every file is compared with its digest when it is read (see `pointset.runs.digests`).
"""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from pointset.errors import REPEATED, PointsetError, one_line
from pointset.runs import digests
from pointset.runs.atomic import full_disk_told, sync, sync_folder
from pointset.runs.claims import claim, owned, read_description

Weights = dict[str, Tensor]
Row = dict[str, Any]
DECISIVE = ("model", "data", "recipe", "seed")
"""Keys of run.json that must agree when a run is resumed; the others are for the record."""


@dataclass
class Checkpoint:
    """State of a training run after some epochs."""

    weights: Weights
    optimizer: dict[str, Any]
    history: list[Row] = field(default_factory=list)
    best: Weights | None = None
    """Weights of the best validation accuracy so far, under early stopping."""
    average: Weights | None = None
    """The moving average of the weights, if the recipe has one."""

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.history)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Set a model and its optimizer to this state.

        Raises:
            PointsetError: the state belongs to another model or optimizer.
        """
        load_weights(model, self.weights, "the checkpoint")
        try:
            optimizer.load_state_dict(self.optimizer)
            for parameter, state in optimizer.state.items():
                sizes = {value.shape for value in state.values() if isinstance(value, Tensor) and value.dim()}
                if sizes - {parameter.shape}:
                    raise ValueError("a tensor of it has another shape than its parameter")
        except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise PointsetError(
                f"the optimizer state in the checkpoint does not belong to this run ({one_line(error, REPEATED)}): "
                "delete the checkpoint and run the same training again from the beginning"
            ) from error


class RunFolder:
    """The folder of one run; see the docstring of the module for its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this folder.

        Raises:
            PointsetError: another process trains in it.
        """
        busy = f"another process is training in {self.path}: wait for it, or give another folder"
        with owned(self.path, busy):
            for left in self.path.glob(".checkpoint-*.tmp"):
                shutil.rmtree(left)
            yield

    def claim(self, description: dict[str, Any]) -> None:
        """Write run.json, or check that the existing one describes the same run.

        It is replaced if no epoch is finished.

        Raises:
            PointsetError: the folder holds a run with other settings; the first difference is named.
        """
        file = self.path / "run.json"
        if not self.finished and not self._checkpoints():
            file.unlink(missing_ok=True)
        elif not file.exists():
            raise PointsetError(
                f"{file} is missing, so it is unknown what was trained there: restore it from a copy, or delete "
                f"{self.path} and run the same training again"
            )
        claim(file, description, DECISIVE, "run")

    def description(self) -> dict[str, Any]:
        """The content of run.json.

        Raises:
            PointsetError: it is damaged.
        """
        return read_description(self.path / "run.json", "run")

    @property
    def finished(self) -> bool:
        """True if the training is complete."""
        return (self.path / "model.safetensors").exists()

    def history(self) -> list[Row]:
        """The finished epochs.

        Raises:
            PointsetError: the file is damaged.
        """
        return digests.parse(self.path / "history.jsonl", parse_lines, "the history of a run", self._anew)

    def save(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint, then remove the ones before it."""
        target = self.path / f"checkpoint-{checkpoint.epoch:04d}"
        temporary = self.path / f".{target.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            with full_disk_told(temporary):
                temporary.mkdir(parents=True)
                digests.fill(temporary, as_files(checkpoint))
                sync_folder(temporary)
            temporary.replace(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        sync(self.path)
        self.write_history(checkpoint.history)
        self._drop_checkpoints(keep=target)

    def load(self) -> Checkpoint | None:
        """The newest checkpoint, or or None if there is none.

        Raises:
            PointsetError: a file of it is damaged; the message names it.
        """
        folders = self._checkpoints()
        if not folders:
            return None
        newest = folders[-1]
        remedy = f"delete {newest} and run the same training again from the beginning"
        # `parse` reports a file that is present but not listed, or listed but missing.
        present = {*digests.read_list(newest), *(path.name for path in newest.iterdir())}
        further = {
            name: digests.parse(newest / f"{name}.safetensors", load_tensors, "weights", remedy)
            for name in ("best", "average")
            if f"{name}.safetensors" in present
        }
        checkpoint = Checkpoint(
            weights=digests.parse(newest / "weights.safetensors", load_tensors, "weights", remedy),
            optimizer=digests.parse(newest / "optimizer.pt", parse_optimizer, "the state of an optimizer", remedy),
            history=digests.parse(newest / "history.json", parse_history, "the history of a run", remedy),
            **further,
        )
        self.write_history(checkpoint.history)
        return checkpoint

    def finish(self, weights: Weights) -> None:
        """Write the trained weights, which marks the run as finished."""
        digests.write(self.path / "model.safetensors", as_safetensors(weights))
        self._drop_checkpoints()

    def tidy(self) -> None:
        """Remove the checkpoint that a killed process left in a finished run."""
        if self.finished:
            self._drop_checkpoints()

    def weights(self) -> Weights:
        """The trained weights.

        Raises:
            PointsetError: the folder is not a run, or the run is not finished, or its weights are damaged.
        """
        if not (self.path / "run.json").exists():
            raise PointsetError(
                f"{self.path} is not a run (it has no run.json): give a folder that `pointset train` wrote"
            )
        if not self.finished:
            raise PointsetError(f"{self.path} is not finished: run the same training again to continue it")
        return digests.parse(self.path / "model.safetensors", load_tensors, "weights", self._anew)

    @property
    def _anew(self) -> str:
        return f"delete {self.path} and run the same training again"

    def _checkpoints(self) -> list[Path]:
        """Oldest first."""
        numbers = {path: path.name.removeprefix("checkpoint-") for path in self.path.glob("checkpoint-*")}
        return sorted((path for path, number in numbers.items() if number.isdecimal()), key=lambda p: int(numbers[p]))

    def _drop_checkpoints(self, keep: Path | None = None) -> None:
        for folder in self._checkpoints():
            if folder != keep:
                shutil.rmtree(folder)

    def write_history(self, history: list[Row]) -> None:
        """Write history.jsonl."""
        lines = "".join(json.dumps(row) + "\n" for row in history)
        digests.write_text(self.path / "history.jsonl", lines)


def load_weights(model: nn.Module, weights: Weights, source: str) -> None:
    """Load weights into a model; `source` names them in messages.

    Raises:
        PointsetError: the weights belong to another model.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise PointsetError(
            f"{source} does not fit the model that run.json describes: restore the two as they were"
        ) from error


def as_files(checkpoint: Checkpoint) -> dict[str, bytes]:
    """The files of a checkpoint, by name; made in memory, so that a full disk is an error of the system."""
    optimizer = io.BytesIO()
    torch.save(checkpoint.optimizer, optimizer)
    files = {
        "weights.safetensors": as_safetensors(checkpoint.weights),
        "optimizer.pt": optimizer.getvalue(),
        "history.json": json.dumps(checkpoint.history).encode(),
    }
    further = {"best.safetensors": checkpoint.best, "average.safetensors": checkpoint.average}
    return files | {name: as_safetensors(weights) for name, weights in further.items() if weights is not None}


def as_safetensors(weights: Weights) -> bytes:
    """A state dict as a file."""
    return save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})


def parse_optimizer(content: bytes) -> dict[str, Any]:
    """The state of an optimizer."""
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not {"state", "param_groups"} <= set(state):
        raise ValueError(f"it is a {type(state).__name__}")
    return state


def parse_lines(content: bytes) -> list[Row]:
    """The rows of history.jsonl."""
    return _rows([json.loads(line) for line in content.splitlines()])


def parse_history(content: bytes) -> list[Row]:
    """The rows of a checkpoint's history."""
    return _rows(json.loads(content))


def _rows(rows: Any) -> list[Row]:
    """Check the rows of a history: one per epoch, with numbers only."""
    if not isinstance(rows, list) or not rows:
        raise ValueError("it has no epoch")
    for epoch, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or row.get("epoch") != epoch:
            raise ValueError(f"row {epoch} is not that of epoch {epoch}")
        if not all(isinstance(value, int | float) for value in row.values()) or not {"loss", "seconds"} <= set(row):
            raise ValueError(f"row {epoch} contains values that are not numbers, or lacks loss or seconds")
    return rows
