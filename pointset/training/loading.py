"""Load the model of a finished run, from its folder or its name in the package."""

from pathlib import Path
from typing import Any

from pointset.data.preparation import Preparation
from pointset.errors import QUOTED, PointsetError, one_line, quoted
from pointset.training.checkpoints import RunFolder
from pointset.zoo import pretrained
from pointset.zoo.classifiers import Classifier
from pointset.zoo.descriptions import check_run, not_a_run
from pointset.zoo.models import build_model, create_pretrained, load_weights, set_preparation, spec_of
from pointset.zoo.pretrained import list_pretrained, pretrained_folder


def find_run(path: str | Path) -> Path:
    """Return the folder of a run, from its path or the name of a trained model in the package."""
    if not str(path):
        raise PointsetError("the name of the model is empty: give the folder of a run, or a trained model")
    folder = Path(path)
    if folder.name == "network" and not folder.exists() and (folder.parent / "candidates.json").exists():
        remedy = "train again in another folder, with a larger --budget or a network by name"
        raise PointsetError(f"{folder.parent} has no network: its budget was too small to train one; {remedy}")
    if folder.exists() or len(folder.parts) > 1:
        return folder
    if str(path) in list_pretrained():
        return pretrained_folder(str(path))
    raise PointsetError(
        f"{quoted(path)} is not a run or a trained model of this package: give a folder that "
        f"`pointset train` wrote or one of {', '.join(list_pretrained())}"
    )


def load_model(name: str | Path) -> Any:
    """Return a trained model of the package, or the model of a finished run, in evaluation mode.

    Args:
        name: a name of `list_pretrained`, such as "isab16-pma.modelnet40-1024", or the folder of a run.

    Returns:
        A `Classifier`: `model.predict`, `predict_proba`, `classify` and `embed` take shapes in any unit and prepare
        them as the training did; `model(points)` takes prepared points. `model.classes` are its classes,
        `model.preparation` is how shapes become points, and `model.description` is the content of run.json.

    Raises:
        PointsetError: there is no such trained model, the folder is not a finished run, or its model is not from the
            zoo.

    Example:
        >>> model = pointset.load_model("isab16-pma.modelnet40-1024")
        >>> model.classes[:2], model(torch.rand(1, 100, 3)).shape
        (['airplane', 'bathtub'], torch.Size([1, 40]))
    """
    folder = find_run(name)
    if folder.parent == pretrained.FOLDER:
        return create_pretrained(folder.name, seed=None).eval()
    run, file = RunFolder(folder), folder / "run.json"
    weights, description = run.weights(), run.description()
    check_run(description, file)
    data = description["data"]
    try:
        model = build_model(spec_of(description["model"]))
        assert isinstance(model, Classifier)
        model.by_thresholds = description["recipe"].get("ordered") == "thresholds"
        set_preparation(model, data["classes"], Preparation.from_dict(data["preparation"]))
    except PointsetError as error:
        raise PointsetError(f"{file} does not fit this installation: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise not_a_run(file, one_line(error, QUOTED) or type(error).__name__) from error
    load_weights(model, weights, f"model.safetensors in {name}")
    model.temperature, model.description = description.get("temperature", model.temperature), description
    return model.eval()
