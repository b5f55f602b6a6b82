"""What the files of a run hold, to bytes and from them: weights, the state of an optimizer, the history."""

import io
import json
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from pointset.errors import REPEATED, PointsetError, one_line

Weights = dict[str, Tensor]
Row = dict[str, Any]


@dataclass
class Checkpoint:
    """State of a training run after some epochs."""

    weights: Weights
    optimizer: dict[str, Any]
    history: list[Row] = field(default_factory=list)
    best: Weights | None = None
    """Weights of the best validation accuracy so far, under early stopping."""
    average: Weights | None = None
    """The moving average of the weights, where the recipe has one."""

    @property
    def epoch(self) -> int:
        """Number of finished epochs."""
        return len(self.history)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Set a model and its optimizer to this state.

        Raises:
            PointsetError: it is the state of others.
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


def load_weights(model: nn.Module, weights: Weights, whose: str) -> None:
    """Fill a model.

    Raises:
        PointsetError: they are the weights of another model.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise PointsetError(
            f"{whose} does not fit the model that run.json describes: restore the two as they were"
        ) from error


def as_files(checkpoint: Checkpoint) -> dict[str, bytes]:
    """The files of a checkpoint, by name.

    They are made in memory: a full disk is then an error of the system, and not of a library in words of its own.
    """
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
    """The file of a state dict."""
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})


def parse_optimizer(content: bytes) -> dict[str, Any]:
    """The state of an optimizer; a ValueError or an error of torch if it is something else."""
    state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not {"state", "param_groups"} <= set(state):
        raise ValueError(f"it is a {type(state).__name__}")
    return state


def parse_lines(content: bytes) -> list[Row]:
    """The rows of history.jsonl; a ValueError if it is something else."""
    return _rows([json.loads(line) for line in content.splitlines()])


def parse_history(content: bytes) -> list[Row]:
    """The rows of a checkpoint's history; a ValueError if it is something else."""
    return _rows(json.loads(content))


def _rows(found: Any) -> list[Row]:
    """The rows of a history, looked at: one per epoch, and nothing but numbers in them."""
    if not isinstance(found, list) or not found:
        raise ValueError("it has no epoch")
    for epoch, row in enumerate(found, start=1):
        if not isinstance(row, dict) or row.get("epoch") != epoch:
            raise ValueError(f"row {epoch} is not that of epoch {epoch}")
        if not all(isinstance(value, int | float) for value in row.values()) or not {"loss", "seconds"} <= set(row):
            raise ValueError(f"row {epoch} contains values that are not numbers, or lacks loss or seconds")
    return found
