"""Load trained models: from the folders of finished runs, or those that come with the package."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from pointset.data.normalize import NORMALIZATIONS
from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.training.checkpoints import load_weights
from pointset.training.packed import PREFIX, SUFFIX, open_run, pull_run
from pointset.zoo import pretrained
from pointset.zoo.classifiers import Classifier, SetModel
from pointset.zoo.models import build_model, know_card, know_data, spec_of
from pointset.zoo.names import missing_parts
from pointset.zoo.pretrained import list_pretrained, pretrained_folder


def find_run(path: str | Path) -> Path:
    """The folder or file of a run, from its path, the name of a trained model in the package, or hub:user/name."""
    if str(path).startswith(PREFIX):
        return pull_run(str(path))
    if Path(path).exists() or len(Path(path).parts) > 1 or Path(path).suffix == SUFFIX:
        return Path(path)
    if str(path) in list_pretrained():
        return pretrained_folder(str(path))
    others = f" or one of {', '.join(list_pretrained())}" if list_pretrained() else ""
    raise PointsetError(
        f"{quoted(path)} is not a run or a trained model of this package: give a folder that "
        f"`pointset train` wrote{others}"
    )


def load_run(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Build the trained model of a finished run, or one that comes with the package.

    Args:
        path: the folder of the run, a file of `pack_run`, "hub:user/name" for a run of `pointset push`, or a name of
            `list_pretrained`, such as "isab16-pma.modelnet40-1024".

    Returns:
        The model in evaluation mode, a `Classifier` or a `Regressor`, and the content of run.json. `model.predict(X)`
        normalises clouds as the training did, and `model.classes` are its classes, or `model.targets` its targets;
        `model(points)` takes points as they are.

    Raises:
        PointsetError: the folder is not a finished run, or its model is not from the zoo.

    Example:
        >>> model, run = pointset.load_run("isab16-pma.modelnet40-1024")
        >>> model.classes[:2], model(torch.rand(1, 100, 3)).shape
        (['airplane', 'bathtub'], torch.Size([1, 40]))
    """
    folder = open_run(find_run(path))
    weights = folder.weights()
    description = folder.description()
    file = folder.path / "run.json"
    _check_description(description, file)
    model, data = description["model"], description["data"]
    try:
        if missing := "" if model.get("members") else missing_parts(model["name"], model["options"]):
            raise PointsetError(
                f"{path} holds a {model['name']}, and {missing} {'are' if ' and ' in missing else 'is'} not "
                "registered: first run the code with pointset.register_pooling, register_encoder or "
                "register_weights, or name its file in the environment variable POINTSET_PARTS"
            )
        built = build_model(spec_of(model))
        assert isinstance(built, SetModel)
        know_data(built, data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_a_run(file, error) from error
    load_weights(built, weights, f"model.safetensors in {path}")
    if folder.path.parent == pretrained.FOLDER and isinstance(built, Classifier):
        know_card(built, folder.path.name)
    return built.eval(), description


@dataclass(frozen=True)
class _Model:
    name: str
    classes: int
    inputs: int
    seed: int
    options: dict[str, Any]
    targets: list[str] = field(default_factory=list)
    per_point: bool = False


@dataclass(frozen=True)
class _Data:
    classes: list[str]
    normalize: str
    point_classes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Run:
    """What every run.json of a classifier of the zoo must have."""

    model: _Model
    data: _Data
    recipe: dict[str, Any]


def _check_description(description: Mapping[str, Any], file: Path) -> None:
    """Raise a PointsetError unless run.json describes a classifier of the zoo."""
    model = description.get("model")
    if isinstance(model, dict) and "class" in model and "name" not in model:
        raise PointsetError(
            f"{file.parent} holds a model of your own ({model['class']}): build it and load model.safetensors into it"
        )
    try:
        run = msgspec.convert(description, _Run)
        key = "point_classes" if run.model.per_point else "classes"
        if not run.model.targets and (names := len(getattr(run.data, key))) != run.model.classes:
            raise ValueError(f"data.{key} are {names} names for {run.model.classes} classes")
        if run.data.normalize not in NORMALIZATIONS:
            raise ValueError(f"data.normalize is {quoted(run.data.normalize)}")
    except ValueError as error:  # msgspec.ValidationError is one
        raise _not_a_run(file, error) from error


def _not_a_run(file: Path, error: Exception) -> PointsetError:
    reason = one_line(error, QUOTED) or type(error).__name__
    return PointsetError(f"{file} does not describe a run ({reason}): restore it from a copy, or train again")
