"""`pointset classify`: predict the classes of one or many shapes, including very large scans."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pointset.commands.models import DO_NOT_TRUST, Model, load_model, say_usual, settled_up, usable
from pointset.commands.options import Json, KeepOutliers
from pointset.commands.terminal import print_json, print_rows
from pointset.data.axes import GuessedUp
from pointset.data.options import POSES
from pointset.errors import PointsetError, escaped
from pointset.runs.atomic import check_writable, checked_suffix
from pointset.zoo.pretrained import ANY_POSE

if TYPE_CHECKING:
    from pointset.evaluation.shape_predictions import Guess

FEW = 5
"""Up to this number of shapes, each gets a table; otherwise, each gets a line."""
Table = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def classify(
    files: list[Path],
    *,
    model: Model = None,
    output: Table = None,
    on_error: Literal["raise", "skip"] = "raise",
    up: GuessedUp = "auto",
    pose: Literal["aligned", "any"] = "aligned",
    keep_outliers: KeepOutliers = False,
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
        on_error: How to handle files that cannot be used: "raise" tries all files, then reports the faulty ones and
            writes nothing; "skip" continues without them.
        up: The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the axis of the
            model's shapes. Files with another axis are rotated. guess takes the turn, one for all files, in which the
            model knows the shapes best, and says when it is unsure.
        pose: "any" is for shapes that may lie or stand in any way; without --model, the model is then one that was
            trained for them.
        as_json: Print JSON.
    """
    from pointset.evaluation.files import classify_files, in_folders
    from pointset.evaluation.shape_predictions import SUFFIXES, accuracy_of, write_guesses
    from pointset.runs.progress import followed
    from pointset.training.devices import find_device
    from pointset.zoo.trust import LEAST

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    if output is not None:
        check_writable(checked_suffix(output, SUFFIXES, "a file of predictions"))
    model = ANY_POSE if pose == "any" and model is None else model
    shapes, trained, start = in_folders(files), load_model(model), perf_counter()
    if pose == "any" and trained.description["data"]["normalize"] != POSES["any"]:
        raise PointsetError(f"{model} was not trained for any pose: leave out --model, or train with --pose any")
    network, data = trained.network.to(find_device("auto")), trained.description["data"]
    turn = settled_up(up, trained, shapes)
    answers = classify_files(network, data, shapes, up=turn, keep_outliers=keep_outliers)
    answers = followed(answers, "classifying", "shape", len(shapes), show=len(shapes) > FEW)
    guesses, failures = usable(answers, on_error)
    seconds = perf_counter() - start
    about = {"model": trained.name, "temperature": network.temperature, "classes": data["classes"]}
    if output is not None:
        write_guesses(output, guesses, about)
    accuracy, known = accuracy_of(guesses, data["classes"])
    if as_json:
        summary = {"output": str(output) if output else None, "shapes": len(guesses), "seconds": seconds}
        summary |= {"accuracy": accuracy if known else None, "of_known_class": known}
        left_out = {"left_out": {failure.name: failure.reason for failure in failures}}
        rows = {} if output else {"predictions": [guess.as_dict() for guess in guesses]}
        print_json({**about, **summary, **left_out, **rows})
        return
    say_usual(model)
    if output is None:
        _print(guesses)
    where = f"saved in {output}: " if output else ""
    print(f"{where}{len(guesses):,} shape{'s' * (len(guesses) != 1)} in {seconds:.1f} s")
    if doubtful := sum(guess.do_not_trust for guess in guesses):
        which = "this class" if len(guesses) == 1 else f"{doubtful:,} of the {len(guesses):,} classes"
        print(f"do not trust {which}: probability below {LEAST:.0%}, more likely wrong than right")
    if known:
        others = len(guesses) - known
        rest = f"; the model does not know the classes of the other {others:,}" if others else ""
        print(f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}")
    for failure in failures:
        print(escaped(f"left out {failure.name}: {failure.reason}"))


def _print(guesses: "Sequence[Guess]") -> None:
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
