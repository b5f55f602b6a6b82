"""Load trained models: from the folders of finished runs, or those that come with the package."""

from pathlib import Path
from typing import Any

from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.training.checkpoints import RunFolder
from pointset.training.packed import PREFIX, SUFFIX, pull_run, read_packed
from pointset.zoo import pretrained
from pointset.zoo.classifiers import Classifier, SetModel
from pointset.zoo.descriptions import check_run, not_a_run
from pointset.zoo.models import build_model, know_card, know_data, load_weights, spec_of
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
    folder = find_run(path)
    run, file = RunFolder(folder), folder / "run.json"
    is_packed = folder.suffix.lower() == SUFFIX and not folder.is_dir()
    weights, description = read_packed(folder) if is_packed else (run.weights(), run.description())
    check_run(description, file)
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
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise not_a_run(file, one_line(error, QUOTED) or type(error).__name__) from error
    load_weights(built, weights, f"model.safetensors in {path}")
    if folder.parent == pretrained.FOLDER and isinstance(built, Classifier):
        know_card(built, folder.name)
    return built.eval(), description
