"""`pointset classify`: what a trained model takes shapes for, one or ten thousand, however large a scan is."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.models import UNLIKE, Model, Trained, load_model, say_usual
from pointset.commands.options import Json
from pointset.commands.printing import print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.errors import PointsetError, escaped

if TYPE_CHECKING:
    from pointset.data.catalogue.folders import LooseShape
    from pointset.evaluation.files import Failure, FileClassifier
    from pointset.evaluation.guesses import Guess

FEW = 5
"""Shapes that get a table each; of more, each gets a line."""
Table = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def classify(
    files: list[Path],
    *,
    model: Model = None,
    output: Table = None,
    on_error: Literal["raise", "skip"] = "raise",
    up: UsualUp = "auto",
    as_json: Json = False,
) -> None:
    """Classify files of shapes, or all in a folder, with a trained model.

    Meshes, of which as many points are sampled as the model was trained on, and small clouds go through the model in
    batches; a large scan is read from the disk piece by piece, whatever its size. All points of a cloud are used.

    Example: `pointset classify path/to/scans --model runs/parts -o predictions.csv`

    Args:
        files: meshes (OFF, OBJ, PLY, STL, GLB), clouds (.npy, .npz, .ply, .pcd, .xyz, .txt), and folders of them; where
            folders are classes, the accuracy is said, classes being compared by their names.
        output: a file of predictions to write, *.csv, *.json or *.parquet: name, true class, the five likeliest classes
            with probabilities, entropy in nats, points.
        on_error: what to do about files that cannot be used: all are tried, and then "raise" names them and writes
            nothing, "skip" does without them.
        up: the files' upward axis; auto takes y for OBJ, GLB and glTF, and else that of the model's shapes. Files with
            another than these are turned.
        as_json: print JSON.
    """
    from pointset.evaluation.files import FileClassifier, in_folders
    from pointset.evaluation.guesses import accuracy_of, check_suffix, write_guesses
    from pointset.training.devices import find_device

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    if output is not None:
        check_suffix(output)
    shapes, trained, start = in_folders(files), load_model(model), perf_counter()
    classifier = FileClassifier(
        trained.network.to(find_device("auto")),
        trained.description["data"],
        temperature=trained.temperature,
        detector=trained.detector,
        up=up,
    )
    found, failures = _all_of(classifier, shapes)
    _refuse(failures, len(found), on_error)
    seconds = perf_counter() - start
    about = {"model": trained.name, "temperature": trained.temperature, "classes": classifier.classes}
    if output is not None:
        write_guesses(output, found, about)
    if as_json:
        summary = {"output": str(output) if output else None, "shapes": len(found), "seconds": seconds}
        accuracy, known = accuracy_of(found, classifier.classes)
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


def _all_of(classifier: "FileClassifier", shapes: "Sequence[LooseShape]") -> "tuple[list[Guess], list[Failure]]":
    """What every shape was taken for, and the files that cannot be used."""
    from pointset.evaluation.guesses import Guess
    from pointset.runs.progress import followed

    found: list[Guess] = []
    failures: list[Failure] = []
    for one in followed(classifier(shapes), "classifying", "shape", len(shapes), show=len(shapes) > FEW):
        if isinstance(one, Guess):
            found.append(one)
        else:
            failures.append(one)
    return found, failures


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
        how = ", read in pieces" * one.streamed + f"; {UNLIKE}" * bool(one.unlike)
        print(escaped(f"{one.name}: {one.points:,} points{how}"))
        print_rows([{"class": name, "%": f"{100 * probability:.1f}"} for name, probability in one.likeliest])


def _row(one: "Guess") -> dict[str, Any]:
    name, probability = one.likeliest[0]
    row = {"shape": one.name, "class": name, "%": f"{100 * probability:.1f}", "points": one.points}
    return row | ({} if one.unlike is None else {"": "unlike" * one.unlike})


def _print_summary(trained: Trained, found: "Sequence[Guess]", output: Path | None, seconds: float) -> None:
    """What there is to say of all of them."""
    from pointset.evaluation.guesses import accuracy_of

    where = f"saved in {output}: " if output else ""
    count = f"{len(found):,} shape{'s' * (len(found) != 1)} in {seconds:.1f} s"
    how = f"; probabilities at the temperature {trained.temperature:.3g} of the model's card" if trained.card else ""
    print(f"{where}{count}{how}")
    if trained.card and trained.card.unlike:
        strange, score = sum(bool(one.unlike) for one in found), trained.card.unlike.score
        print(f"{_who(strange, len(found))} {UNLIKE}, by {score}")
    accuracy, known = accuracy_of(found, trained.description["data"]["classes"])
    if known:
        others = len(found) - known
        rest = f"; {others:,} are of no class that the model knows" if others else ""
        print(f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}")


def _who(strange: int, count: int) -> str:
    """How many of the shapes are strange, up to the verb."""
    if count == 1:
        return "it is" if strange else "it is not"
    return "none of them is" if not strange else f"{strange:,} of them {'is' if strange == 1 else 'are'}"
