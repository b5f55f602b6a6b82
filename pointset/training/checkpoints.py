"""Runs on disk: a folder that is complete at every moment, also when the process is killed.

    run.json            what the run is: model, recipe, data, versions (written first)
    history.jsonl       one line per finished epoch
    checkpoint-0007/    everything needed to continue after epoch 7 (one folder at a time)
    model.safetensors   the trained weights (written last: it marks the run as finished)

Files are written beside their place, flushed to the disk and renamed into it. The folder, and each checkpoint, has a
SHA256SUMS of them: whatever is read is first compared with its digest (see `pointset.runs.digests`).
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from torch import nn

from pointset.data.normalize import NORMALIZATIONS
from pointset.errors import PointsetError, quoted
from pointset.inputs import takes
from pointset.runs import digests
from pointset.runs.atomic import full_disk_told, sync, sync_folder
from pointset.runs.claims import claim, owned, read_description
from pointset.training.contents import (
    Checkpoint,
    Row,
    Weights,
    as_files,
    as_safetensors,
    load_weights,
    parse_history,
    parse_lines,
    parse_optimizer,
)
from pointset.zoo.carried import source_digests
from pointset.zoo.models import Spec, build_model, know_data, spec_of
from pointset.zoo.names import missing_parts, missing_weights
from pointset.zoo.pretrained import list_pretrained, pretrained_folder

DECISIVE = ("model", "data", "recipe", "seed")
"""What a run shares with those that resume it; the rest of run.json is for the record."""


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
        busy = f"another process is training in {self.path}: wait for it, or give another folder"
        with owned(self.path, busy):
            for left in self.path.glob(".checkpoint-*.tmp"):
                shutil.rmtree(left)
            yield

    def claim(self, description: dict[str, Any]) -> None:
        """Write run.json, or check that the existing one describes the same run.

        It is replaced where no epoch is finished.

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
        """Whether the training came to its end."""
        return (self.path / "model.safetensors").exists()

    def history(self) -> list[Row]:
        """The finished epochs.

        Raises:
            PointsetError: the file of them is damaged.
        """
        return digests.parse(self.path / "history.jsonl", parse_lines, "the history of a run", self._anew)

    def save(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint, then drop the ones before it."""
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
        """The newest checkpoint, or None when there is none.

        Raises:
            PointsetError: a file of it is damaged; it is named.
        """
        folders = self._checkpoints()
        if not folders:
            return None
        newest = folders[-1]
        remedy = f"delete {newest} and run the same training again from the beginning"
        # A file that is there and not listed, or the other way about, is damage: `parse` says so.
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
        """Drop the checkpoint that a kill left in a finished run."""
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
        **({"parts": parts} if (parts := source_digests(spec.name, spec.options)) else {}),
    }


def find_run(path: str | Path) -> Path:
    """The folder of a run, given as a path or as the name of a trained model that comes with the package.

    Raises:
        PointsetError: there is no such folder and no such model.
    """
    if Path(path).exists() or len(Path(path).parts) > 1:
        return Path(path)
    if str(path) in list_pretrained():
        return pretrained_folder(str(path))
    others = f" or one of {', '.join(list_pretrained())}" if list_pretrained() else ""
    raise PointsetError(
        f"{quoted(path)} is not a run or a trained model of this package: give a folder that "
        f"`pointset train` wrote{others}"
    )


@takes(path=str | Path)
def load_run(path: str | Path) -> tuple[nn.Module, dict[str, Any]]:
    """Build the trained model of a finished run, or one that comes with the package.

    Args:
        path: the folder of the run, or a name of `list_pretrained`, such as "isab16-pma.modelnet40-1024".

    Returns:
        The model in evaluation mode, and the content of run.json. `model.predict(X)` normalises clouds as the
        training did, and `model.classes` are its classes; `model(points)` takes points as they are.

    Raises:
        PointsetError: the folder is not a finished run, or its model is not from the zoo.

    Example:
        >>> model, run = pointset.load_run("isab16-pma.modelnet40-1024")
        >>> model.classes[:2], model(torch.rand(1, 100, 3)).shape
        (['airplane', 'bathtub'], torch.Size([1, 40]))
    """
    folder = RunFolder(find_run(path))
    weights = folder.weights()
    description = folder.description()
    remedy = "restore it from a copy, or train again"
    model, data = description.get("model"), description.get("data")
    if not isinstance(model, dict) or not isinstance(data, dict) or "recipe" not in description:
        raise PointsetError(f"{folder.path / 'run.json'} does not describe a run: {remedy}")
    if "name" not in model:
        raise PointsetError(
            f"{path} holds a model of your own ({model.get('class')}): build it and load model.safetensors into it"
        )
    classes = data.get("classes")
    if not isinstance(classes, list) or len(classes) != model.get("classes"):
        raise PointsetError(
            f"{folder.path / 'run.json'} does not name the {model.get('classes')} classes of its model: {remedy}"
        )
    options = model.get("options")
    if missing := missing_parts(model["name"]) or missing_weights(options if isinstance(options, dict) else {}):
        raise PointsetError(
            f"{path} holds a {model['name']}, and {missing} {'are' if ' and ' in missing else 'is'} not registered: "
            "first run the code with pointset.register_pooling, register_encoder or register_weights, or name its file "
            "in the environment variable POINTSET_PARTS"
        )
    built = _build(model, folder.path / "run.json")
    load_weights(built, weights, f"model.safetensors in {path}")
    if data.get("normalize") not in NORMALIZATIONS:
        raise PointsetError(f"{folder.path / 'run.json'} does not say how its clouds were normalised: {remedy}")
    know_data(built, data)
    return built.eval(), description


def _build(model: dict[str, Any], file: Path) -> nn.Module:
    try:
        return build_model(spec_of(model))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PointsetError(f"{file} does not describe a model: restore it from a copy, or train again") from error
