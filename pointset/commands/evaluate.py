"""`pointset evaluate`: test a trained model."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any, Literal

from pointset.commands.flags import Predictions
from pointset.commands.terminal import Result
from pointset.commands.trained import Model, load_model, usual
from pointset.configuration import PointCount
from pointset.data.axes import FileUp
from pointset.errors import counted

CALIBRATION = {
    "loss": "log loss",
    "brier": "Brier score",
    "calibration_error": "calibration error, equal width",
    "calibration_error_equal_mass": "calibration error, equal mass",
}
"""Metrics that depend on the temperature, with their titles."""


def evaluate(
    *,
    model: Model = None,
    data: str | None = None,
    labels: str | None = None,
    split: Literal["train", "test"] = "test",
    output: Predictions | None = None,
    calibrate: bool = False,
    objective: Literal["log loss", "calibration error"] = "log loss",
    points: PointCount | None = None,
    on_error: Literal["raise", "skip"] | None = None,
    remove_outliers: bool | None = None,
    up: FileUp = "auto",
) -> Result:
    """Test a trained model on point sets that are prepared as in training.

    Example: `pointset evaluate --model runs/parts --calibrate -o predictions.csv`

    Args:
        data: Name of a dataset (see `pointset data list`), or a folder; default: the dataset of the run.
        labels: Table (*.csv) with the columns "file" and "label", and optionally "split" and "group"; default: as in
            training.
        split: Split of the data to test on.
        output: File for the predictions (*.csv): name, true class, the five most likely classes with their
            probabilities (at the temperature of --calibrate or of the model's card), and entropy in nats.
        calibrate: Also fit a temperature on the run's validation split. It changes probabilities, but not the accuracy.
        objective: Metric that --calibrate minimises on the validation split. The log loss is less noisy than the
            calibration error.
        points: Points per set; default: --points (not --train-points) of the run.
        on_error: "skip" continues without shapes that cannot be used, and "raise" reports them; default: as in
            training.
        remove_outliers: Remove outliers of point clouds in files; default: as in training.
        up: The axis that points up in the data; auto uses the run's axis for the run's own data, the card's axis for
            another dataset with a card, and the axis that `classify` assumes for other files. Shapes are rotated if the
            training shapes have another axis.
    """
    from pointset.data.catalogue.folders import ShapeFile
    from pointset.data.leakage import repeated_files
    from pointset.data.reload import load_like
    from pointset.evaluation import evaluate as evaluate_sets
    from pointset.evaluation.predictions import validation_temperature
    from pointset.evaluation.shape_files import guess, write_guesses

    trained = load_model(model)
    trained.on_device()
    about = trained.description["data"]
    sets = load_like(about, split, data, on_error, points, up, remove_outliers, labels)
    evaluation = evaluate_sets(trained.network, sets)
    prediction = evaluation.prediction
    assert prediction is not None
    result = {"model": trained.name} | evaluation.summary()
    columns = {"as trained": result}
    if calibrate:
        temperature = validation_temperature(trained.network, trained.description, objective)
        scaled = evaluation.at_temperature(temperature).summary()
        columns = columns | {f"at temperature {temperature:.3f}": scaled}
        kept = {name: scaled[name] for name in ("accuracy", *CALIBRATION)}
        result |= {"temperature": temperature, "calibrated": kept}
        prediction = dataclasses.replace(prediction, temperature=temperature)
    if output is not None:
        true_classes = [sets.classes[label] for label in sets.labels.tolist()]
        shapes = [ShapeFile(Path(name), name, true) for name, true in zip(sets.names, true_classes, strict=True)]
        write_guesses(output, guess(shapes, prediction, sets.classes, sets.sizes))
    if trained.description["recipe"].get("ordered"):
        result["rank_error"] = evaluation.rank_error
    line = (
        f"{counted(result['shapes'], f'{sets.split} shape')}: accuracy {result['accuracy']:.2%}, "
        f"mean-class accuracy {result['mean_class_accuracy']:.2%}, loss {result['loss']:.3f}"
        + (f", mean difference of ranks {result['rank_error']:.3f}" if "rank_error" in result else "")
    )
    calibration = [
        {"": title, **{head: f"{metrics[name]:.4f}" for head, metrics in columns.items()}}
        for name, title in CALIBRATION.items()
    ]
    classes = [{"class": name, "accuracy %": f"{100 * value:.1f}"} for name, value in result["per_class"].items()]
    text: list[Any] = [*usual(model), line, calibration, classes]
    if left_out := sets.describe().get("left_out"):
        result["left_out"] = left_out
    if split == "test" and sets.source == about["source"]:
        text += repeated_files(sets)
    elif data is not None and sets.listing is not None and sets.listing.is_hashed:
        part = "a fifth" if split == "test" else "four fifths"
        whole = shlex.join(["pointset", "classify", data, "--model", str(model or trained.name)])
        text.insert(-2, f"these are {part} of {data}, which has no split folders; to test all shapes: `{whole}`")
    if output is not None:
        text.append(f"predictions saved in {output}")
    return Result(result, *text)
