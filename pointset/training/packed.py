"""A finished run as one file to send: what `pointset pack` writes and every --model reads.

The file is a ZIP archive without compression, so that nothing in it can unpack to more than its size, of three files;
none of them is executed, or written to the disk, when the model is loaded:

    card.json           for people: the model, its classes or targets, how its sets are made; SHA-256 of the other two
    run.json            the description of the run, without the place of its data
    model.safetensors   the trained weights
"""

import hashlib
import json
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors

from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.runs.atomic import as_json, check_writable, write_for_user
from pointset.training.checkpoints import RunFolder, Weights, as_safetensors
from pointset.zoo.pretrained import list_pretrained

SUFFIX = ".pointset"
FORMAT = 1
CARD, RUN, WEIGHTS = "card.json", "run.json", "model.safetensors"
OF_SETS = ("points", "normalize", "up", "features")
"""Entries of a run's data that the card repeats."""
AGAIN = "get the file again from its sender"


def pack_run(run: str | Path, output: str | Path) -> dict[str, Any]:
    """Write a finished run as one file.

    Args:
        run: the folder of a run, of any kind.
        output: the file to write, *.pointset.

    Returns:
        The card inside the file.

    Raises:
        PointsetError: the folder is not a finished run or is damaged, or the file cannot be written.

    Example:
        >>> fitted = pointset.fit(model, train, pointset.Recipe(epochs=1), run="runs/parts", progress=False)
        >>> card = pointset.pack_run("runs/parts", "parts.pointset")
        >>> card["classes"], pointset.load_run("parts.pointset")[0].classes
        (['flat', 'round'], ['flat', 'round'])
    """
    folder, output = RunFolder(Path(run)), Path(output)
    if output.suffix.lower() != SUFFIX:
        raise PointsetError(f"{output}: the name of a packed run must end in {SUFFIX}")
    check_writable(output)
    if str(run) in list_pretrained():
        raise PointsetError(f"{run} comes with the package: its name is enough")
    weights, description = folder.weights(), folder.description()
    data = description.get("data", {})
    source = Path(str(data.get("source", "")))
    if source.is_absolute():  # of no use elsewhere, and nobody's business
        description = description | {"data": data | {"source": source.name}}
    content = {RUN: as_json(description).encode(), WEIGHTS: as_safetensors(weights)}
    model = description.get("model", {})
    card = {
        "format": FORMAT,
        "model": model.get("name", model.get("class")),
        "parameters": sum(tensor.numel() for tensor in weights.values()),
        **{name: data[name] for name in ("name", "classes", "point_classes", *OF_SETS) if name in data},
        **({"targets": model["targets"]} if model.get("targets") else {}),
        "commit": description.get("commit"),
        "sha256": {name: _digest(entry) for name, entry in content.items()},
    }

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name, entry in {CARD: as_json(card).encode(), **content}.items():
                archive.writestr(zipfile.ZipInfo(name), entry)  # of a fixed date: the same run gives the same bytes

    write_for_user(output, write)
    return card


class PackedRun(RunFolder):
    """A file of `pack_run`: the weights and the description of its run, from memory."""

    def description(self) -> dict[str, Any]:
        """The content of run.json; see `weights`."""
        return self._content[0]

    def weights(self) -> Weights:
        """The trained weights."""
        return self._content[1]

    @cached_property
    def _content(self) -> tuple[dict[str, Any], Weights]:
        try:
            files = self._files()
            card = json.loads(files[CARD])
            if card["format"] != FORMAT:
                raise PointsetError(f"{self.path} has format {quoted(card['format'])}, not {FORMAT}: update pointset")
            changed = [name for name, digest in card["sha256"].items() if _digest(files[name]) != digest]
            if changed or {*card["sha256"]} != {RUN, WEIGHTS}:
                raise PointsetError(f"{self.path} is damaged, a file in it differs from its digest: {AGAIN}")
            return json.loads(files[RUN]), load_tensors(files[WEIGHTS])
        except PointsetError:
            raise
        except FileNotFoundError as error:
            raise PointsetError(f"{self.path}: the file does not exist: check its spelling") from error
        except Exception as error:  # zipfile, json and safetensors raise many kinds for damage
            reason = one_line(error, QUOTED) or type(error).__name__
            raise PointsetError(f"{self.path} is damaged, or not a packed run ({reason}): {AGAIN}") from error

    def _files(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.path) as archive:
            entries = archive.infolist()
            names = sorted(entry.filename for entry in entries)
            if names != sorted((CARD, RUN, WEIGHTS)):
                raise PointsetError(
                    f"{self.path} holds {quoted(', '.join(names))}, and a packed run has {CARD}, {RUN} and {WEIGHTS}"
                )
            size = sum(entry.file_size for entry in entries)
            if any(entry.compress_type for entry in entries) or size > self.path.stat().st_size:
                raise PointsetError(f"{self.path} is compressed, to {size:,} bytes, and a packed run is not: {AGAIN}")
            return {entry.filename: archive.read(entry) for entry in entries}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def open_run(path: Path) -> RunFolder:
    """A run in a folder, or packed into a file."""
    return PackedRun(path) if path.suffix.lower() == SUFFIX and not path.is_dir() else RunFolder(path)
