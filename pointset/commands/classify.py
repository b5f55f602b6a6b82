"""`pointset classify`: predict the classes of one or many shapes, including very large scans."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.models import DO_NOT_TRUST, Model, Trained, load_model, say_usual
from pointset.commands.options import Json, KeepOutliers
from pointset.commands.printing import print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.errors import PointsetError, escaped

if TYPE_CHECKING:
    from pointset.evaluation.files import Failure
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
    up: UsualUp = "auto",
    keep_outliers: KeepOutliers = False,
    as_json: Json = False,
) -> None:
    """Classify files of shapes, or all files in a folder, with a trained model.

    Each mesh is sampled with as many points as the model was trained on. All points of a point cloud are used, but for
    isolated ones: small clouds are processed in batches, a large scan is read from the disk in pieces, whatever its
    size, with all its points.

    Example: `pointset classify path/to/scans --model runs/parts -o predictions.csv`

    Args:
        files: Meshes (OFF, OBJ, PLY, STL, GLB), point clouds (.npy, .npz, .ply, .pcd, .xyz, .csv), and folders of them.
            If folders are named like classes of the model, the accuracy is printed.
        output: File for the predictions (*.csv, *.json or *.parquet): name, true class, the five most likely classes
            with their probabilities, entropy in nats, number of points, and whether not to trust the likeliest class.
        on_error: How to handle files that cannot be used: "raise" tries all files, then reports the faulty ones and
            writes nothing; "skip" continues without them.
        up: The axis that points up in the files; auto assumes y for OBJ, GLB and glTF, otherwise the axis of the
            model's shapes. Files with another axis are rotated.
        as_json: Print JSON.
    """
    from pointset.evaluation.files import classify_files, in_folders
    from pointset.evaluation.shape_predictions import Guess, accuracy_of, check_suffix, write_guesses
    from pointset.runs.progress import followed
    from pointset.training.devices import find_device

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    if output is not None:
        check_suffix(output)
    shapes, trained, start = in_folders(files), load_model(model), perf_counter()
    network, data = trained.network.to(find_device("auto")), trained.description["data"]
    answers = classify_files(network, data, shapes, up=up, keep_outliers=keep_outliers)
    found: list[Guess] = []
    failures: list[Failure] = []
    for answer in followed(answers, "classifying", "shape", len(shapes), show=len(shapes) > FEW):
        (found if isinstance(answer, Guess) else failures).append(answer)  # type: ignore[arg-type]
    if failures:
        _refuse(failures, len(found), on_error)
    seconds = perf_counter() - start
    about = {"model": trained.name, "temperature": network.temperature, "classes": data["classes"]}
    if output is not None:
        write_guesses(output, found, about)
    if as_json:
        summary = {"output": str(output) if output else None, "shapes": len(found), "seconds": seconds}
        accuracy, known = accuracy_of(found, data["classes"])
        summary |= {"accuracy": accuracy if known else None, "of_known_class": known}
        left_out = {"left_out": {one.name: one.reason for one in failures}}
        rows = {} if output else {"predictions": [one.as_dict() for one in found]}
        print_json({**about, **summary, **left_out, **rows})
        return
    say_usual(model)
    if output is None:
        _print(found)
    _print_summary(trained, found, output, seconds)
    for failure in failures:
        print(escaped(f"left out {failure.name}: {failure.reason}"))


def _refuse(failures: "Sequence[Failure]", usable: int, on_error: str) -> None:
    from pointset.data.unusable import refuse_or_leave_out

    if len(failures) == 1 and not usable:
        raise PointsetError(failures[0].reason)
    reasons = {one.name: one.reason for one in failures}
    refuse_or_leave_out(reasons, usable, on_error, "files", "repair them")


def _print(found: "Sequence[Guess]") -> None:
    if len(found) > FEW:
        print_rows([_row(one) for one in found])
        return
    for one in found:
        how = ", read in pieces" * one.streamed + f"; {DO_NOT_TRUST}" * one.do_not_trust
        print(escaped(f"{one.name}: {one.points:,} point{'s' * (one.points != 1)}{how}"))
        print_rows([{"class": name, "%": f"{100 * probability:.1f}"} for name, probability in one.likeliest])


def _row(one: "Guess") -> dict[str, Any]:
    name, probability = one.likeliest[0]
    row = {"shape": one.name, "class": name, "%": f"{100 * probability:.1f}", "points": one.points}
    return row | {"": "do not trust" * one.do_not_trust}


def _print_summary(trained: Trained, found: "Sequence[Guess]", output: Path | None, seconds: float) -> None:
    """Print the number of shapes, how many classes not to trust, and the accuracy if known."""
    from pointset.evaluation.shape_predictions import accuracy_of
    from pointset.zoo.trust import LEAST

    where = f"saved in {output}: " if output else ""
    count = f"{len(found):,} shape{'s' * (len(found) != 1)} in {seconds:.1f} s"
    print(f"{where}{count}")
    if doubtful := sum(one.do_not_trust for one in found):
        which = "this class" if len(found) == 1 else f"{doubtful:,} of the {len(found):,} classes"
        print(f"do not trust {which}: probability below {LEAST:.0%}, more likely wrong than right")
    accuracy, known = accuracy_of(found, trained.description["data"]["classes"])
    if known:
        others = len(found) - known
        rest = f"; the model does not know the classes of the other {others:,}" if others else ""
        print(f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}")
