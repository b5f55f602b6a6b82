"""Finished runs: load their models, from folders, files or the package; pack them into files.

A packed run is a ZIP archive without compression, so that nothing in it can unpack to more than its size, of three
files; none of them is executed, or written to the disk, when the model is loaded:

    card.json           for people: the model, its classes, how its sets are made
    run.json            the description of the run, without the place of its data
    model.safetensors   the trained weights
"""

import json
import zipfile
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors

from pointset.data.options import TABLES
from pointset.data.preparation import Preparation
from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.runs.atomic import check_writable, write_for_user
from pointset.runs.files import require_file
from pointset.runs.records import as_json, checked_json
from pointset.training.checkpoints import RunFolder, Weights, as_safetensors
from pointset.zoo import pretrained
from pointset.zoo.classifiers import Classifier
from pointset.zoo.descriptions import RunDescription, check_run, not_a_run
from pointset.zoo.models import build_model, create_pretrained, load_weights, set_preparation, spec_of
from pointset.zoo.pretrained import list_pretrained, pretrained_folder, pretrained_run

SUFFIX = ".pointset"
PACKED_FORMAT = 1
CARD, RUN, WEIGHTS = "card.json", "run.json", "model.safetensors"
OF_SETS = ("points", "normalize", "up", "features")
"""Entries of a run's data that the card repeats."""
GET_AGAIN = "get the file again from its sender"


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
    model, data = description.get("model", {}), description.get("data", {})
    paths = {name: Path(str(data.get(name) or "")) for name in ("source", *TABLES)}
    private = {name: path.name for name, path in paths.items() if path.is_absolute()}  # useless elsewhere, too
    if private:
        description = description | {"data": data | private}
    content = {RUN: as_json(description).encode(), WEIGHTS: as_safetensors(weights)}
    card = {
        "format": PACKED_FORMAT,
        "model": model.get("name", model.get("class")),
        "parameters": sum(tensor.numel() for tensor in weights.values()),
        **{name: data[name] for name in ("name", "classes", *OF_SETS) if name in data},
        "commit": description.get("commit"),
    }

    def write(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name, entry in {CARD: as_json(card).encode(), **content}.items():
                archive.writestr(zipfile.ZipInfo(name), entry)  # of a fixed date: the same run gives the same bytes

    write_for_user(output, write)
    return card


def read_packed(path: Path) -> tuple[Weights, dict[str, Any]]:
    """The weights and the description of a packed run, from memory."""
    try:
        files = _files(path)
        card = json.loads(files[CARD])
        if card["format"] != PACKED_FORMAT:
            raise PointsetError(f"{path} has format {quoted(card['format'])}, not {PACKED_FORMAT}: update pointset")
        return load_tensors(files[WEIGHTS]), checked_json(files[RUN], RunDescription)
    except PointsetError:
        raise
    except FileNotFoundError as error:
        raise PointsetError(f"{path}: the file does not exist: check its spelling") from error
    except Exception as error:  # zipfile, json and safetensors raise many kinds for damage
        reason = one_line(error, QUOTED) or type(error).__name__
        raise PointsetError(f"{path} is damaged, or not a packed run ({reason}): {GET_AGAIN}") from error


def _files(path: Path) -> dict[str, bytes]:
    require_file(path)
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = sorted(entry.filename for entry in entries)
        if names != sorted((CARD, RUN, WEIGHTS)):
            holds = quoted(", ".join(names))
            raise PointsetError(f"{path} holds {holds}, and a packed run has {CARD}, {RUN} and {WEIGHTS}")
        size = sum(entry.file_size for entry in entries)
        if any(entry.compress_type for entry in entries) or size > path.stat().st_size:
            raise PointsetError(f"{path} is compressed, to {size:,} bytes, and a packed run is not: {GET_AGAIN}")
        return {entry.filename: archive.read(entry) for entry in entries}


def find_run(path: str | Path) -> Path:
    """The folder or file of a run, from its path or the name of a trained model in the package."""
    if not str(path):
        raise PointsetError("the name of the model is empty: give the folder of a run, or a trained model")
    folder = Path(path)
    if folder.name == "network" and not folder.exists() and (folder.parent / "choice.json").exists():
        remedy = "train again in another folder, with a larger --budget or a network by name"
        raise PointsetError(f"{folder.parent} has no network: its budget was too small to train one; {remedy}")
    if folder.exists() or len(folder.parts) > 1 or folder.suffix == SUFFIX:
        return folder
    if str(path) in list_pretrained():
        return pretrained_folder(str(path))
    raise PointsetError(
        f"{quoted(path)} is not a run or a trained model of this package: give a folder that "
        f"`pointset train` wrote or one of {', '.join(list_pretrained())}"
    )


def load_run(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Build the trained model of a finished run, or one that comes with the package.

    Args:
        path: the folder of the run, a file of `pack_run`, or a name of `list_pretrained`, such as
            "isab16-pma.modelnet40-1024".

    Returns:
        The model in evaluation mode, a `Classifier`, and the content of run.json. `model.predict(X)` normalises clouds
        as the training did, and `model.classes` are its classes; `model(points)` takes points as they are.

    Raises:
        PointsetError: the folder is not a finished run, or its model is not from the zoo.

    Example:
        >>> model, run = pointset.load_run("isab16-pma.modelnet40-1024")
        >>> model.classes[:2], model(torch.rand(1, 100, 3)).shape
        (['airplane', 'bathtub'], torch.Size([1, 40]))
    """
    folder = find_run(path)
    if folder.parent == pretrained.FOLDER:
        description = pretrained_run(folder.name)
        return create_pretrained(folder.name, seed=description["model"]["seed"]).eval(), description
    run, file = RunFolder(folder), folder / "run.json"
    is_packed = folder.suffix.lower() == SUFFIX and not folder.is_dir()
    weights, description = read_packed(folder) if is_packed else (run.weights(), run.description())
    check_run(description, file)
    model, data = description["model"], description["data"]
    try:
        built = build_model(spec_of(model))
        assert isinstance(built, Classifier)
        built.by_thresholds = description["recipe"].get("ordered") == "thresholds"
        set_preparation(built, data["classes"], Preparation.from_dict(data["preparation"]))
    except PointsetError as error:
        raise PointsetError(f"{file} does not fit this installation: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise not_a_run(file, one_line(error, QUOTED) or type(error).__name__) from error
    load_weights(built, weights, f"model.safetensors in {path}")
    built.temperature = description.get("temperature", built.temperature)
    return built.eval(), description
