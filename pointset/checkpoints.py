"""Runs on disk: a folder that is complete at every moment, whatever kills the process.

    run.json            what the run is: model, recipe, data, versions (written first)
    history.jsonl       one line per finished epoch
    checkpoint-0007/    everything needed to go on after epoch 7 (one folder at a time)
    model.safetensors   the trained weights (written last: it marks the run as finished)

Files are written beside their place and renamed into it.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pointset.configuration import ModelOptions
from pointset.errors import PointsetError
from pointset.zoo import Spec, build_model

Weights = dict[str, Tensor]
Row = dict[str, Any]


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON; a file that is none is an error that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PointsetError(f"{path} is no valid JSON ({error}): restore it or delete its folder") from error


@dataclass
class Checkpoint:
    """The state of a training after some epochs."""

    weights: Weights
    optimizer: dict[str, Any]
    history: list[Row] = field(default_factory=list)
    best: Weights | None = None
    """Weights of the best validation accuracy so far, when early stopping watches it."""

    @property
    def epoch(self) -> int:
        """Finished epochs."""
        return len(self.history)


class RunFolder:
    """The folder of one run; see the module's text for what lies in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, description: dict[str, Any]) -> None:
        """Write run.json, or check that the one there describes the same run.

        Raises:
            PointsetError: the folder holds a run with other settings; the first difference is named.
        """
        file = self.path / "run.json"
        mine = json.loads(json.dumps(description))  # as JSON gives it back: lists for tuples
        if not file.exists():
            write_json(file, mine)
            return
        theirs = read_json(file)
        for part in ("model", "data", "recipe", "seed"):
            if theirs.get(part) != mine.get(part):
                difference = _first_difference(theirs.get(part), mine.get(part), part)
                raise PointsetError(f"{self.path} holds another run ({difference}): give another folder or delete it")

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        return (self.path / "model.safetensors").exists()

    def history(self) -> list[Row]:
        """The finished epochs."""
        lines = (self.path / "history.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

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
        temporary.replace(target)
        self._write_history(checkpoint.history)
        self._drop_checkpoints(keep=target)

    def load(self) -> Checkpoint | None:
        """The newest checkpoint, or None when there is none."""
        folders = self._checkpoints()
        if not folders:
            return None
        newest = folders[-1]
        best = newest / "best.safetensors"
        checkpoint = Checkpoint(
            weights=load_file(newest / "weights.safetensors"),
            optimizer=torch.load(newest / "optimizer.pt", map_location="cpu", weights_only=True),
            history=read_json(newest / "history.json"),
            best=load_file(best) if best.exists() else None,
        )
        self._write_history(checkpoint.history)
        return checkpoint

    def finish(self, weights: Weights) -> None:
        """Write the trained weights: from now on the run is finished."""
        write_atomically(self.path / "model.safetensors", lambda temporary: save_weights(weights, temporary))
        self._drop_checkpoints()

    def weights(self) -> Weights:
        """The trained weights.

        Raises:
            PointsetError: the folder is no run, or the run is not finished.
        """
        if not (self.path / "run.json").exists():
            raise PointsetError(f"{self.path} is no run: give a folder that `pointset train` wrote (it has a run.json)")
        if not self.finished:
            raise PointsetError(f"{self.path} is not finished: start the same training again and it goes on")
        return load_file(self.path / "model.safetensors")

    def _checkpoints(self) -> list[Path]:
        return sorted(self.path.glob("checkpoint-*"))

    def _drop_checkpoints(self, keep: Path | None = None) -> None:
        for folder in [*self._checkpoints(), *self.path.glob(".checkpoint-*.tmp")]:
            if folder != keep:
                shutil.rmtree(folder)

    def _write_history(self, history: list[Row]) -> None:
        write_text(self.path / "history.jsonl", "".join(json.dumps(row) + "\n" for row in history))


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
    }


def load_run(path: str | Path) -> tuple[nn.Module, dict[str, Any]]:
    """Build the trained model of a finished run.

    Returns:
        The model in evaluation mode, and the content of run.json.

    Raises:
        PointsetError: the folder is no finished run, or its model is not of the zoo.
    """
    folder = RunFolder(Path(path))
    weights = folder.weights()
    description = read_json(folder.path / "run.json")
    model = description["model"]
    if "name" not in model:
        raise PointsetError(
            f"{path} holds a model of your own ({model['class']}): build it and load model.safetensors into it"
        )
    options = ModelOptions.from_dict(model["options"])
    built = build_model(Spec(model["name"], model["classes"], model["inputs"], model["seed"], options))
    built.load_state_dict(weights)
    return built.eval(), description


def _first_difference(theirs: Any, mine: Any, where: str) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in [*theirs, *mine]:
            if theirs.get(key) != mine.get(key):
                return _first_difference(theirs.get(key), mine.get(key), f"{where}.{key}")
    return f"{where} is {theirs!r} there and {mine!r} here"
