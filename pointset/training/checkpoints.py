"""Runs on disk: a folder that is complete at every moment, also when the process is killed.

    run.json            what the run is: model, recipe, data, versions (written first)
    history.jsonl       one line per finished epoch
    checkpoint-0007/    everything needed to continue after epoch 7 (one folder at a time)
    model.safetensors   the trained weights (written last: it marks the run as finished)

Files are written beside their place, flushed to the disk and renamed into it.
"""

import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.runs.atomic import read_json, sync, sync_folder, write_atomically, write_text
from pointset.runs.claims import claim
from pointset.zoo.carried import source_digests
from pointset.zoo.models import Spec, build_model
from pointset.zoo.names import missing_parts
from pointset.zoo.options import ModelOptions

Weights = dict[str, Tensor]
Row = dict[str, Any]
T = TypeVar("T")


@dataclass
class Checkpoint:
    """The state of a training after some epochs."""

    weights: Weights
    optimizer: dict[str, Any]
    history: list[Row] = field(default_factory=list)
    best: Weights | None = None
    """Weights of the best validation accuracy so far, under early stopping."""

    @property
    def epoch(self) -> int:
        """Finished epochs."""
        return len(self.history)


class RunFolder:
    """The folder of one run; see the module's text for what lies in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this folder.

        Raises:
            PointsetError: another process trains in it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock", blocking=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise PointsetError(
                f"another process is training in {self.path}: wait for it, or give another folder"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def claim(self, description: dict[str, Any]) -> None:
        """Write run.json, or check that the existing one describes the same run.

        It is replaced where no epoch is finished.

        Raises:
            PointsetError: the folder holds a run with other settings; the first difference is named.
        """
        file = self.path / "run.json"
        if not self.finished and not self._checkpoints():
            file.unlink(missing_ok=True)
        claim(file, description, ("model", "data", "recipe", "seed"), "run")

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return (self.path / "model.safetensors").exists()

    def history(self) -> list[Row]:
        """The finished epochs."""
        return _intact(self.path / "history.jsonl", _read_lines)

    def save(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint, then drop the ones before it."""
        target = self.path / f"checkpoint-{checkpoint.epoch:04d}"
        temporary = self.path / f".{target.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        save_weights(checkpoint.weights, temporary / "weights.safetensors")
        torch.save(checkpoint.optimizer, temporary / "optimizer.pt")
        (temporary / "history.json").write_text(json.dumps(checkpoint.history), encoding="utf-8")
        if checkpoint.best is not None:
            save_weights(checkpoint.best, temporary / "best.safetensors")
        sync_folder(temporary)
        temporary.replace(target)
        sync(self.path)
        self._write_history(checkpoint.history)
        self._drop_checkpoints(keep=target)

    def load(self) -> Checkpoint | None:
        """The newest checkpoint, or None when there is none.

        Raises:
            PointsetError: a file of it is damaged; it is named.
        """
        folders = self._checkpoints()
        if not folders:
            return None
        newest = folders[-1]
        best = newest / "best.safetensors"
        checkpoint = Checkpoint(
            weights=_intact(newest / "weights.safetensors", load_file),
            optimizer=_intact(newest / "optimizer.pt", _load_optimizer),
            history=read_json(newest / "history.json"),
            best=_intact(best, load_file) if best.exists() else None,
        )
        self._write_history(checkpoint.history)
        return checkpoint

    def finish(self, weights: Weights) -> None:
        """Write the trained weights, which marks the run as finished."""
        write_atomically(self.path / "model.safetensors", lambda temporary: save_weights(weights, temporary))
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
            raise PointsetError(f"{self.path} is not finished: start the same training again to continue it")
        return _intact(self.path / "model.safetensors", load_file)

    def _checkpoints(self) -> list[Path]:
        """Oldest first."""
        numbers = {path: path.name.removeprefix("checkpoint-") for path in self.path.glob("checkpoint-*")}
        return sorted((path for path, number in numbers.items() if number.isdecimal()), key=lambda p: int(numbers[p]))

    def _drop_checkpoints(self, keep: Path | None = None) -> None:
        for folder in [*self._checkpoints(), *self.path.glob(".checkpoint-*.tmp")]:
            if folder != keep:
                shutil.rmtree(folder)

    def _write_history(self, history: list[Row]) -> None:
        write_text(self.path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in history))


def _intact(path: Path, read: Callable[[Path], T]) -> T:
    """What `read` makes of a file; a damaged or missing one is an error that names it."""
    try:
        return read(path)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, SafetensorError) as error:
        raise PointsetError(f"{path} is damaged ({error}): delete its folder and start the training again") from error


def _read_lines(path: Path) -> list[Row]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not rows:
        raise ValueError("it has no epoch")
    return rows


def _load_optimizer(path: Path) -> dict[str, Any]:
    return torch.load(path, map_location="cpu", weights_only=True)


def save_weights(weights: Weights, path: Path) -> None:
    """Write a state dict as safetensors."""
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, path)


def describe_model(model: nn.Module) -> dict[str, Any]:
    """What run.json says of a model: its spec for one of the zoo, its class for one of the user's own."""
    spec = getattr(model, "spec", None)
    if not isinstance(spec, Spec):
        return {"class": type(model).__qualname__}
    return {
        "name": spec.name,
        "classes": spec.classes,
        "inputs": spec.inputs,
        "seed": spec.seed,
        "options": spec.options.as_dict(),
        **({"parts": parts} if (parts := source_digests(spec.name)) else {}),
    }


def load_run(path: str | Path) -> tuple[nn.Module, dict[str, Any]]:
    """Build the trained model of a finished run.

    Returns:
        The model in evaluation mode, and the content of run.json.

    Raises:
        PointsetError: the folder is not a finished run, or its model is not from the zoo.
    """
    folder = RunFolder(Path(path))
    weights = folder.weights()
    description = read_json(folder.path / "run.json")
    if not isinstance(description, dict) or not {"model", "data", "recipe"} <= set(description):
        raise PointsetError(f"{folder.path / 'run.json'} does not describe a run: restore it or train again")
    model = description["model"]
    if "name" not in model:
        raise PointsetError(
            f"{path} holds a model of your own ({model['class']}): build it and load model.safetensors into it"
        )
    classes = description["data"].get("classes")
    if not isinstance(classes, list) or len(classes) != model["classes"]:
        raise PointsetError(
            f"{folder.path / 'run.json'} does not name the {model['classes']} classes that its model tells apart: "
            "restore it or train again"
        )
    if missing := missing_parts(model["name"]):
        raise PointsetError(
            f"{path} holds a {model['name']}, and {missing} is not registered: run the code that registers it first "
            "(pointset.register_pooling or register_encoder)"
        )
    options = ModelOptions.from_dict(model["options"])
    built = build_model(Spec(model["name"], model["classes"], model["inputs"], model["seed"], options))
    _fill(built, weights, folder.path)
    return built.eval(), description


def _fill(model: nn.Module, weights: Weights, path: Path) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise PointsetError(
            f"{path}: model.safetensors does not fit the model that run.json describes: restore the two as they were"
        ) from error
