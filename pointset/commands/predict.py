"""`pointset classify` and `pointset predict`: classes or numbers of one or many shapes, very large scans included."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pointset.commands.models import DO_NOT_TRUST, Model, load_model, say_usual, settled_up, usable
from pointset.commands.options import FileOptions, Json, Predictions, Reading, ReadingFlags
from pointset.commands.terminal import print_json, print_rows
from pointset.configuration import Decay
from pointset.data.axes import GuessedUp
from pointset.data.options import POSES
from pointset.errors import PointsetError, escaped
from pointset.zoo.pretrained import ANY_POSE

if TYPE_CHECKING:
    from pointset.data.catalogue.folders import ShapeFile
    from pointset.evaluation.files import Failure
    from pointset.evaluation.numbers import Estimate
    from pointset.evaluation.shape_predictions import Guess

FEW = 5
"""Up to this number of shapes, each gets a table of classes, without a progress bar; otherwise, a line."""


@dataclass(frozen=True, kw_only=True)
class TurnedReading(FileOptions):
    """How files are read whose direction can be guessed."""

    up: GuessedUp = "auto"
    """The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the axis of the model's
    shapes. Files with another axis are rotated. guess takes the turn, one for all files, in which the model knows the
    shapes best, and says when it is unsure."""


def classify(
    files: list[Path],
    /,
    *,
    model: Model = None,
    output: Predictions | None = None,
    pose: Literal["aligned", "any"] = "aligned",
    reading: Annotated[TurnedReading, ReadingFlags] = TurnedReading(),
    as_json: Json = False,
) -> None:
    """Classify files of shapes, or all files in a folder, with a trained model.

    Each mesh is sampled with as many points as the model was trained on. All points of a point cloud are used, but for
    isolated ones: small clouds are processed in batches, a large scan is read from the disk in pieces, whatever its
    size, with all its points.

    Example: `pointset classify path/to/scans --model runs/parts -o predictions.csv`

    Args:
        files: Meshes (OFF, OBJ, PLY, STL, GLB), point clouds (.npy, .npz, .ply, .pcd, .las, .xyz, .csv), and folders of
            them. If folders are named like classes of the model, the accuracy is printed.
        output: File for the predictions (*.csv or *.json): name, true class, the five most likely classes
            with their probabilities, entropy in nats, number of points, whether not to trust the likeliest class, and
            for the trained models novelty: 1 is typical of shapes like those of training, more is less like them.
        pose: "any" is for shapes that may lie or stand in any way; without --model, the model is then one that was
            trained for them.
    """
    from pointset.evaluation.files import classify_files
    from pointset.evaluation.shape_predictions import accuracy_of
    from pointset.training.devices import find_device
    from pointset.zoo.trust import LEAST

    shapes, start = _shapes_in(files), perf_counter()
    model = ANY_POSE if pose == "any" and model is None else model
    trained = load_model(model)
    if pose == "any" and trained.description["data"]["normalize"] != POSES["any"]:
        raise PointsetError(f"{model} was not trained for any pose: leave out --model, or train with --pose any")
    network, data = trained.network.to(find_device("auto")), trained.description["data"]
    turn = settled_up(reading.up, trained, shapes)
    answers = classify_files(network, data, shapes, up=turn, keep_outliers=reading.keep_outliers)
    guesses, failures = usable(answers, reading.on_error, "classifying", len(shapes), show=len(shapes) > FEW)
    seconds = perf_counter() - start
    accuracy, known = accuracy_of(guesses, data["classes"])
    notes = []
    if doubtful := sum(guess.do_not_trust for guess in guesses):
        which = "this class" if len(guesses) == 1 else f"{doubtful:,} of the {len(guesses):,} classes"
        notes.append(f"do not trust {which}: probability below {LEAST:.0%}, more likely wrong than right")
    if known:
        others = len(guesses) - known
        rest = f"; the model does not know the classes of the other {others:,}" if others else ""
        notes.append(
            f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}"
        )
    about = {"model": trained.name, "temperature": network.temperature, "classes": data["classes"]}
    figures = {"seconds": seconds, "accuracy": accuracy if known else None, "of_known_class": known}
    if not as_json:
        say_usual(model)
    _report(guesses, failures, about, figures, output, as_json, _print_classes, notes)


def predict(
    files: list[Path],
    /,
    *,
    model: str,
    output: Predictions | None = None,
    level: Decay = 0.9,
    reading: Annotated[Reading, ReadingFlags] = Reading(),
    as_json: Json = False,
) -> None:
    """Predict the numbers that a model was trained for, such as mass, for files of shapes or all files in a folder.

    Each number has an interval that contains the true value for --level of the shapes, if they are like those of
    training (split conformal prediction). Shapes must be in the units of the training shapes.

    Example: `pointset predict path/to/new --model runs/best -o masses.csv`

    Args:
        files: Meshes (OFF, OBJ, PLY, STL, GLB), point clouds (.npy, .npz, .ply, .pcd, .xyz, .csv), and folders of them.
        model: Run of `pointset train --target`: its folder, or a file of `pointset pack`.
        output: File for the predictions (*.csv or *.json): name; for each target its value and the ends of
            the interval; number of points.
        level: Share of shapes whose true value is in the interval.
    """
    from pointset.evaluation.files import estimate_files
    from pointset.training.devices import find_device
    from pointset.zoo.regressors import conformal_rank

    shapes, start = _shapes_in(files), perf_counter()
    trained = load_model(model, learned="numbers")
    network, data = trained.network.to(find_device("auto")), trained.description["data"]
    answers = estimate_files(network, data, shapes, level=level, up=reading.up, keep_outliers=reading.keep_outliers)
    estimates, failures = usable(answers, reading.on_error, "predicting", len(shapes), show=len(shapes) > FEW)
    figures, notes = {"seconds": perf_counter() - start}, []
    if conformal_rank(held_out := network.scores.shape[1], level) > held_out:
        notes = [
            f"no intervals at {level:.0%}: too few shapes ({held_out}) were held out in training, see --validation"
        ]
    about = {"model": trained.name, "targets": list(network.targets), "level": level}

    def print_numbers(estimates: "Sequence[Estimate]") -> None:
        interval = f"{level:.0%} interval"
        rows = []
        for estimate in estimates:
            row = {"shape": estimate.name}
            for target, (value, low, high) in estimate.values.items():
                row |= {target: f"{value:.4g}", f"{target}: {interval}": f"{low:.4g} to {high:.4g}"}
            rows.append(row)
        print_rows(rows)

    _report(estimates, failures, about, figures, output, as_json, print_numbers, notes)


def _shapes_in(files: list[Path]) -> "list[ShapeFile]":
    """The shapes to predict; refuses the folder of a run."""
    from pointset.evaluation.files import in_folders

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    return in_folders(files)


def _report(
    predictions: "Sequence[Any]",
    failures: "Sequence[Failure]",
    about: dict[str, Any],
    figures: dict[str, Any],
    output: Path | None,
    as_json: bool,
    print_table: Callable[[Any], None],
    notes: Sequence[str],
) -> None:
    """Write predictions to the output, if there is one, and print them: as JSON, or as a table with notes."""
    from pointset.evaluation.shape_predictions import write_guesses

    if output is not None:
        write_guesses(output, predictions, about)
    if as_json:
        summary = {"output": str(output) if output else None, "shapes": len(predictions)} | figures
        left_out = {"left_out": {failure.name: failure.reason for failure in failures}}
        rows = {} if output else {"predictions": [prediction.as_dict() for prediction in predictions]}
        print_json({**about, **summary, **left_out, **rows})
        return
    if output is None:
        print_table(predictions)
    where = f"saved in {output}: " if output else ""
    print(f"{where}{len(predictions):,} shape{'s' * (len(predictions) != 1)} in {figures['seconds']:.1f} s")
    for note in notes:
        print(note)
    for failure in failures:
        print(escaped(f"left out {failure.name}: {failure.reason}"))


def _print_classes(guesses: "Sequence[Guess]") -> None:
    """Print a table for each of a few shapes, or a line for each of many."""
    if len(guesses) <= FEW:
        for guess in guesses:
            how = ", read in pieces" * guess.streamed + f"; {DO_NOT_TRUST}" * guess.do_not_trust
            print(escaped(f"{guess.name}: {guess.points:,} point{'s' * (guess.points != 1)}{how}"))
            print_rows([{"class": name, "%": f"{100 * probability:.1f}"} for name, probability in guess.likeliest])
        return
    rows = []
    for guess in guesses:
        name, probability = guess.likeliest[0]
        row = {"shape": guess.name, "class": name, "%": f"{100 * probability:.1f}", "points": guess.points}
        rows.append(row | {"": "do not trust" * guess.do_not_trust})
    print_rows(rows)
