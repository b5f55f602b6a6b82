"""`pointset classify`: classify files of shapes."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

from pointset.commands.flags import Predictions, Reading, ReadingFlags
from pointset.commands.terminal import Result, Table
from pointset.commands.trained import (
    FEW,
    LOW_CONFIDENCE,
    Model,
    left_out,
    load_model,
    low_confidence_advice,
    run_over_files,
    usual,
)
from pointset.errors import PointsetError, counted
from pointset.zoo.pretrained import ANY_POSE

if TYPE_CHECKING:
    from pointset.evaluation.shape_files import Guess


def classify(
    files: list[Path],
    /,
    *,
    model: Model = None,
    output: Predictions | None = None,
    pose: Literal["aligned", "any"] = "aligned",
    reading: Annotated[Reading, ReadingFlags] = Reading(),
) -> Result:
    """Classify files of shapes, or all files in a folder, with a trained model.

    The number of points per shape is that of the model's training. The points are sampled from a mesh, or are a random
    subset of a larger point cloud. All points of a smaller point cloud are used.

    Example: `pointset classify path/to/scans --model runs/parts -o predictions.csv`

    Args:
        files: Meshes (OFF, OBJ, PLY, STL, GLB), point clouds (.npy, .npz, .ply, .pcd, .las, .laz, .xyz, .pts, .txt,
            .csv, .tsv), and folders of these. If folders are named after the model's classes, the accuracy is printed.
        output: File for the predictions (*.csv): name, true class (if it is a class of the model), the five most likely
            classes with their probabilities, entropy in nats, number of points, whether the confidence is low, and for
            pretrained models the distance to their training shapes (1 is typical, above 2 is out of distribution).
        pose: "any" is for shapes in any pose. The default model is then one that was trained for any pose.
    """
    from pointset.evaluation.shape_files import accuracy_of, classify_files, in_folders, write_guesses
    from pointset.zoo.predicting import LEAST_PROBABILITY

    shapes, start = in_folders(files), perf_counter()
    model = ANY_POSE if pose == "any" and model is None else model
    trained = load_model(model)
    if pose == "any" and trained.network.preparation.normalize != "principal-axes":
        raise PointsetError(
            f"{model} was not trained for any pose: leave out --model, or train with --normalize principal-axes"
        )
    guesses, failures = run_over_files(classify_files, trained, shapes, reading, "classifying")
    accuracy, known = accuracy_of(guesses)
    if output is not None:
        write_guesses(output, guesses)
    seconds = perf_counter() - start
    where = f"saved in {output}: " if output else ""
    text = [*usual(model), *([] if output else _classes(guesses))]
    text.append(f"{where}{counted(len(guesses), 'shape')} in {seconds:.1f} s")
    if doubtful := sum(guess.low_confidence for guess in guesses):
        shapes_of = f"{doubtful:,} of {len(guesses):,} shapes have"
        which = "the class has" if len(guesses) == 1 else shapes_of
        advice = low_confidence_advice(trained, model, reading.up)
        why = f"a probability below {LEAST_PROBABILITY:.0%}, or too low so far from the training shapes"
        text.append(f"{which} {LOW_CONFIDENCE} ({why}): {advice}")
    if known:
        others = len(guesses) - known
        rest = f"; the model does not know the classes of the other {others:,}" if others else ""
        text.append(f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}")
    data = {
        "model": trained.name,
        "temperature": trained.network.temperature,
        "classes": trained.network.classes,
        "output": output and str(output),
        "shapes": len(guesses),
        "seconds": seconds,
        "accuracy": accuracy if known else None,
        "of_known_class": known,
        "left_out": failures,
        **({} if output else {"predictions": [guess.as_dict() for guess in guesses]}),
    }
    return Result(data, *text, *left_out(failures))


def _classes(guesses: "Sequence[Guess]") -> list[str | Table]:
    """Return a table of classes for each shape if there are few shapes, otherwise one table with a row per shape."""
    text: list[str | Table] = []
    if len(guesses) <= FEW:
        for guess in guesses:
            how = f"; {LOW_CONFIDENCE}" * guess.low_confidence
            text.append(f"{guess.name}: {counted(guess.points, 'point')}{how}")
            text.append([{"class": name, "%": f"{100 * share:.1f}"} for name, share in guess.likeliest])
        return text
    rows, doubtful = [], any(guess.low_confidence for guess in guesses)
    for guess in guesses:
        name, probability = guess.likeliest[0]
        row = {"shape": guess.name, "class": name, "%": f"{100 * probability:.1f}", "points": guess.points}
        rows.append(row | ({"": LOW_CONFIDENCE * guess.low_confidence} if doubtful else {}))
    return [rows]
