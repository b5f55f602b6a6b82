"""The result of a training, and the folder of a run. Files in the folder are complete at any time, also after a kill.

    run.json            the description of the run: model, recipe, data, versions (written first)
    history.jsonl       one line per finished epoch
    checkpoint.pt       everything needed to continue after the last finished epoch
    model.safetensors   the trained weights (written last: it marks the run as finished)

Each file is written under a temporary name in the same folder, flushed to disk, and renamed.
"""

import io
import json
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypedDict

import msgspec
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from pointset.data.imperfections import THINNEST
from pointset.data.options import Preparation
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.runs.atomic import locked
from pointset.runs.provenance import origin
from pointset.runs.records import write_or_compare
from pointset.training.recipe import Recipe
from pointset.zoo.models import Spec, load_weights
from pointset.zoo.pretrained import WEIGHTS, remedy_of, run_weights

EpochRow = dict[str, Any]
Weights = dict[str, Tensor]


class _Machine(TypedDict):
    system: str
    cores: int
    accelerator: str | None
    threads: int


class _Run(TypedDict, total=False):
    """Types of the fields of run.json that are read of any run, with a custom model too."""

    model: dict[str, Any]
    recipe: dict[str, Any]
    data: dict[str, Any]
    seed: int
    versions: dict[str, str]
    machine: _Machine
    commit: str | None


CHECKPOINT = "checkpoint.pt"
DECISIVE = ("model", "data", "recipe", "seed", "loss", "optimizer", "validation", "frozen", "initial_weights")
"""Keys of run.json that must be equal when a run is resumed. Other keys are information."""
Callback = Callable[[EpochRow], object]
"""A function that is called with each row of the history. If the function returns True, the run stops."""


@dataclass
class Checkpoint:
    """The state of a training run before the first epoch or after any epoch."""

    weights: Weights
    optimizer: dict[str, Any]
    history: list[EpochRow] = field(default_factory=list)
    best: Weights | None = None
    """The weights with the best validation accuracy so far, or None without early stopping."""
    finished: bool = False
    """True if the training is complete."""

    def as_bytes(self) -> bytes:
        """Return the state as the content of a file, from which `of` restores it."""
        content = io.BytesIO()
        torch.save(vars(self) | {"history": json.dumps(self.history)}, content)
        return content.getvalue()

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return the state from the content of a file, on the CPU, without executing code in it."""
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        return cls(**state | {"history": _checked(json.loads(state["history"]))})

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer, source: str = "the checkpoint") -> None:
        """Set a model and its optimizer to this state. Messages name the state as `source`."""
        load_weights(model, self.weights, source)
        optimizer.load_state_dict(self.optimizer)


class RunFolder:
    """The folder of one run. The docstring of the module lists the files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder, so that no other process trains in it."""
        busy = f"another process is training in {self.path}: wait for it, or give another folder"
        return locked(self.path / ".lock", busy)

    def describe(self, description: dict[str, Any]) -> None:
        """Write run.json if no epoch is finished. Otherwise, check that the existing file describes the same run."""
        file = self.path / "run.json"
        if not self.finished and not self._checkpoint.exists():
            file.unlink(missing_ok=True)
        elif not file.exists():
            raise PointsetError(
                f"{file} is missing, which describes the run in this folder: restore it from a copy, or train in "
                "another folder"
            )
        if self.finished and description.get("initial_weights") == weight_number(self.weights()):
            # The model has the weights of this run, for example after a notebook cell was run again.
            description = description | {"initial_weights": self.description().get("initial_weights")}
        write_or_compare(file, description, DECISIVE, "run")

    def description(self) -> dict[str, Any]:
        """Return the content of run.json."""
        return records.read_json(self.path / "run.json", remedy_of(self.path), _Run)

    @property
    def finished(self) -> bool:
        """Return True if the training is complete."""
        return (self.path / WEIGHTS).exists()

    def history(self) -> list[EpochRow]:
        """Return the rows of the finished epochs."""

        def parse(content: bytes) -> list[EpochRow]:
            return _checked([json.loads(line) for line in content.splitlines()])

        return records.parse(self.path / "history.jsonl", parse, "the history of a run", remedy_of(self.path))

    def history_if_any(self) -> list[EpochRow]:
        """Return the rows of the finished epochs, or no rows if their file is missing."""
        return self.history() if (self.path / "history.jsonl").exists() else []

    def fitted(self, model: nn.Module, recipe: Recipe) -> "Fitted":
        """Load the trained weights into the model of this finished run."""
        load_weights(model, self.weights(), f"the run in {self.path}")
        return make_fitted(model, self.history(), recipe)

    def enter(self, description: dict[str, Any], begun: Checkpoint) -> Checkpoint:
        """Write or compare run.json, and return the state of the run. `begun` is the state before the first step."""
        self.describe(description)
        if self.finished:
            self._checkpoint.unlink(missing_ok=True)  # left over if the process was killed while it finished the run
            return replace(begun, weights=self.weights(), history=self.history(), finished=True)
        return self.load() or begun

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint, which replaces the previous checkpoint, and the history."""
        records.write(self._checkpoint, checkpoint.as_bytes())
        self.write_history(checkpoint.history)

    def load(self) -> Checkpoint | None:
        """Return the checkpoint if there is one, and write its history."""
        if not self._checkpoint.exists():
            return None
        remedy = f"delete {self._checkpoint} and run the same training again from the beginning"
        checkpoint = records.parse(self._checkpoint, Checkpoint.of, "a checkpoint", remedy)
        self.write_history(checkpoint.history)
        return checkpoint

    def finish(self, weights: Weights) -> None:
        """Write the trained weights, which mark the run as finished."""
        content = save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})
        records.write(self.path / WEIGHTS, content)
        self._checkpoint.unlink(missing_ok=True)

    def weights(self) -> Weights:
        """Return the trained weights."""
        return run_weights(self.path)

    @property
    def _checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    def write_history(self, history: list[EpochRow]) -> None:
        """Write history.jsonl."""
        lines = "".join(json.dumps(row) + "\n" for row in history)
        records.write_text(self.path / "history.jsonl", lines)


class _Row(TypedDict):
    epoch: int
    seconds: float


def _checked(rows: Any) -> list[EpochRow]:
    """Return the rows of a history. ValueError unless all values are numbers and the epochs are 1, 2, ..."""
    for kind in (list[dict[str, float | bool]], list[_Row]):
        msgspec.convert(rows, kind)
    if any(isinstance(value, bool) and name != "stopped" for row in rows for name, value in row.items()):
        raise ValueError("it has a truth value for a number")
    if [row["epoch"] for row in rows] != [*range(1, len(rows) + 1)]:
        raise ValueError("its lines are not those of epochs 1, 2, ...")
    return list(rows)


@dataclass(frozen=True)
class Fitted:
    """The result of a training."""

    model: nn.Module
    """The model that was passed to `fit`, now trained, in evaluation mode."""
    history: list[EpochRow]
    """One row per epoch with `epoch`, `loss`, `accuracy`, `learning_rate`, `seconds` (wall time of data loading and
    training, without validation), `processor_seconds` (CPU time, only on a CPU), and `validation_accuracy` (with a
    validation split). If a callback ended the run, `stopped` is True in the last row."""
    best_epoch: int
    """The epoch whose weights the model has: the last one or, with early stopping, the one of best validation
    accuracy."""

    def __repr__(self) -> str:
        """Return one line with the model, the number of epochs and the last accuracies."""
        count, last = len(self.history), self.history[-1] if self.history else {}
        columns = {"accuracy": "training accuracy", "validation_accuracy": "validation accuracy"}
        words = [f", {words} {100 * last[name]:.1f} %" for name, words in columns.items() if name in last]
        model = type(self.model).__name__ if "\n" in repr(self.model) else repr(self.model)
        return f"Fitted {model}; {count} epoch{'s' * (count != 1)}{''.join(words)}"

    @property
    def seconds(self) -> float:
        """Return the wall time of all epochs in seconds."""
        return float(sum(row["seconds"] for row in self.history))

    @property
    def work(self) -> float:
        """Return the CPU time of all epochs in seconds. For a training on a GPU, return the wall time."""
        return float(sum(row["processor_seconds" if "processor_seconds" in row else "seconds"] for row in self.history))


def make_fitted(model: nn.Module, history: list[EpochRow], recipe: Recipe) -> Fitted:
    """Return the result of a training, with the model in evaluation mode."""
    kept = len(history) if recipe.patience is None else best_epoch(history)
    return Fitted(model.eval(), history, kept)


def best_epoch(history: list[EpochRow]) -> int:
    """Return the first epoch (counted from 1) with the highest validation accuracy, or 0 for an empty history."""
    scores = [row.get("validation_accuracy", -math.inf) for row in history]
    return scores.index(max(scores)) + 1 if scores else 0


def preparation_of(train: PointSets, recipe: Recipe) -> Preparation:
    """Return the preparation for other shapes. After training on thinned clouds, few points give no warning."""
    return replace(train.preparation, least=2 * THINNEST) if "thin" in recipe.augment else train.preparation


def describe_run(model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> dict[str, Any]:
    """Return a description of a run in one process, from which the run can be repeated."""
    prepared = replace(preparation_of(train, recipe), local_features=getattr(model, "local_features", "none"))
    data = train.describe() | {"preparation": prepared.as_dict()}
    return {
        "model": describe_model(model),
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": data,
        **({} if getattr(model, "temperature", 1.0) == 1.0 else {"temperature": model.temperature}),
        "processes": 1,
        **origin(),
    }


def initial_state(model: nn.Module) -> dict[str, Any]:
    """Return a description of a model's weights for run.json. PointsetError if no parameter can be trained."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if len(frozen) == len(list(model.parameters())):
        raise PointsetError("all parameters of the model are frozen: set requires_grad of those to train to True")
    return {"initial_weights": weight_number(model.state_dict()), "frozen": frozen}


def weight_number(weights: Weights) -> float:
    """Return a number that identifies weights: their product with a fixed vector, divided by their norm.

    The number is rounded to three decimals, because rounding errors of initial weights differ between machines.
    """
    tensors = [weights[name] for name in sorted(weights) if weights[name].is_floating_point()]
    whole = torch.cat([torch.ones(1).double(), *(tensor.detach().flatten().cpu().double() for tensor in tensors)])
    fixed = torch.arange(len(whole)).double().sin()
    return round(float(whole @ fixed / whole.norm()), 3)


def describe_model(model: nn.Module) -> dict[str, Any]:
    """Return the description of a model for run.json: its spec if it is from the zoo, otherwise its class."""
    spec = getattr(model, "spec", None)
    return spec.as_dict() if isinstance(spec, Spec) else {"class": type(model).__qualname__}
