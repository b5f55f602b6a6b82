"""`pointset classify`, `predict` and `segment`: classes, numbers or labels of points."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from pointset.commands.models import DO_NOT_TRUST, FEW, Model, answers, load_model, settled_up, usual
from pointset.commands.options import Out, Predictions, Reading, ReadingFlags, Up
from pointset.commands.terminal import Result, Table, counted
from pointset.configuration import Decay
from pointset.data.options import POSES
from pointset.data.targets import UNLABELLED, classes_of
from pointset.errors import PointsetError
from pointset.runs.progress import followed
from pointset.zoo.pretrained import ANY_POSE

if TYPE_CHECKING:
    from pointset.evaluation.files import Failure, LabelledPoints
    from pointset.evaluation.shape_predictions import Guess, ShapeEstimate


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

    Each mesh is sampled with as many points as the model was trained on. All points of a point cloud are used, but for
    isolated ones; of a cloud of more than 16,384 points a random part, as many as the model was trained on.

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
    from pointset.evaluation.files import classify_files, in_folders
    from pointset.evaluation.shape_predictions import accuracy_of
    from pointset.zoo.trust import LEAST_PROBABILITY

    shapes, start = in_folders(files), perf_counter()
    model = ANY_POSE if pose == "any" and model is None else model
    trained = load_model(model)
    if pose == "any" and trained.data["normalize"] != POSES["any"]:
        raise PointsetError(f"{model} was not trained for any pose: leave out --model, or train with --pose any")
    guesses, failures = answers(classify_files, trained, shapes, reading, "classifying")
    accuracy, known = accuracy_of(guesses, trained.data["classes"])
    figures = {"seconds": perf_counter() - start, "accuracy": accuracy if known else None, "of_known_class": known}
    notes = []
    if doubtful := sum(guess.do_not_trust for guess in guesses):
        which = "this class" if len(guesses) == 1 else f"{doubtful:,} of the {len(guesses):,} classes"
        notes.append(f"do not trust {which}: probability below {LEAST_PROBABILITY:.0%}, more likely wrong than right")
    if known:
        others = len(guesses) - known
        rest = f"; the model does not know the classes of the other {others:,}" if others else ""
        notes.append(
            f"accuracy {accuracy:.1%} of the {known:,} shapes whose folder is one of the model's classes{rest}"
        )
    about = {"model": trained.name, "temperature": trained.network.temperature, "classes": trained.data["classes"]}
    table = [*usual(model), *([] if output else _classes(guesses))]
    return _result(guesses, failures, about, figures, output, table, notes)


def predict(
    files: list[Path],
    /,
    *,
    model: str,
    output: Predictions | None = None,
    level: Decay = 0.9,
    reading: Annotated[Reading, ReadingFlags] = Reading(),
) -> Result:
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
    from pointset.evaluation.files import estimate_files, in_folders
    from pointset.zoo.regressors import conformal_rank

    shapes, start = in_folders(files), perf_counter()
    trained = load_model(model, "numbers")
    estimates, failures = answers(estimate_files, trained, shapes, reading, "predicting", level=level)
    figures = {"seconds": perf_counter() - start}
    held_out, notes = trained.network.scores.shape[1], []
    if conformal_rank(held_out, level) > held_out:
        notes = [
            f"no intervals at {level:.0%}: too few shapes ({held_out}) were held out in training, see --validation"
        ]
    about = {"model": trained.name, "targets": list(trained.network.targets), "level": level}
    table = [] if output else [_numbers(estimates, f"{level:.0%} interval")]
    return _result(estimates, failures, about, figures, output, table, notes)


def segment(
    file: Path,
    /,
    *,
    model: str,
    output: Out | None = None,
    labels: str | None = None,
    up: Up = "auto",
) -> Result:
    """Label every point of a cloud, or points that are sampled on a mesh, with a model trained with --labels.

    The suffix of the output sets the format. .ply and .csv have each point in the units of the file with its label, its
    probability and, in a .ply, the colour of its class. .html is a page
    on which the points turn, coloured by label, truth and error (with --labels), entropy and probability.

    Example: `pointset segment room.ply --model runs/rooms -o labelled.ply`

    Args:
        file: A point cloud (.npy, .npz, .ply, .pcd, .las, .xyz, .csv, .pts), a mesh (OFF, OBJ, PLY, STL, GLB), or a
            folder of them.
        model: Run of `pointset train --labels`: its folder, or a file of `pointset pack`.
        output: The file to write: *.ply, *.csv or *.html; for a folder, another folder, which gets a .ply for each
            file.
        labels: The column of the clouds with their true labels: prints the accuracy and the IoU.
    """
    from pointset.evaluation.files import in_folders, label_points
    from pointset.evaluation.predictions import intersection_over_union
    from pointset.viz.labels import check_label_file, write_labels

    several = file.is_dir()
    if several and output is not None and output.suffix:
        raise PointsetError(f"{output}: {file} is a folder, so give the name of a folder, without a suffix")
    if output is not None and not several:
        check_label_file(output)
    trained = load_model(model, "points")
    network, classes, values = trained.on_device(), list(trained.network.classes), trained.data["point_labels"]
    counts, confusion = np.zeros(len(classes), np.int64), np.zeros((len(classes), len(classes)), np.int64)

    def counted(blocks: "Iterable[LabelledPoints]") -> "Iterator[LabelledPoints]":
        for block in blocks:
            counts[:] += np.bincount(block.labels, minlength=len(classes))
            if block.truth is not None:
                truth = classes_of(block.truth, dict(zip(values, classes, strict=True)))
                known = truth != UNLABELLED
                np.add.at(confusion, (truth[known], block.labels[known]), 1)
            yield block

    shapes = in_folders([file])
    turn = settled_up(up, trained, shapes)
    for shape in followed(shapes, "labelling", "file", len(shapes), show=len(shapes) > 1):
        blocks = counted(label_points(network, trained.data, shape.path, up=turn, column=labels))
        if output is None:
            deque(blocks, maxlen=0)
            continue
        path = output / f"{shape.name}.ply" if several else output
        path.parent.mkdir(parents=True, exist_ok=True)
        write_labels(path, blocks, classes, values)
    iou = intersection_over_union(confusion, classes)
    known = int(confusion.sum())
    metrics: dict[str, Any] = {"labelled": known}
    if known:
        metrics |= {"accuracy": confusion.trace() / known, "mean_iou": sum(iou.values()) / len(iou), "iou": iou}
    points = dict(zip(classes, counts.tolist(), strict=True))
    result = {"model": model, "output": output and str(output), "labels": values, "points": points}
    what = f"{len(shapes):,} files" if several else file.name
    text = [f"{what}: {counts.sum():,} points" + (f", saved in {output}" if output else "")]
    if labels is not None:
        result |= metrics
        rates = f": accuracy {metrics['accuracy']:.2%}, mean IoU {metrics['mean_iou']:.2%}" if known else ""
        text.append(f"{known:,} of them have a label in {labels} that the model knows{rates}")
    rows = []
    for name, value in zip(classes, values, strict=True):
        if points[name] or name in iou:
            row = {"label": str(value), "class": name, "points": f"{points[name]:,}"}
            rows.append(row | ({"IoU %": f"{100 * iou[name]:.1f}" if name in iou else ""} if known else {}))
    return Result(result, *text, rows)


def _result(
    predictions: "Sequence[Any]",
    failures: "Sequence[Failure]",
    about: dict[str, Any],
    figures: dict[str, Any],
    output: Path | None,
    table: Sequence[Any],
    notes: Sequence[str],
) -> Result:
    """Predictions, which are in the output or in the table, and what is to be said of them."""
    from pointset.evaluation.shape_predictions import write_guesses

    if output is not None:
        write_guesses(output, predictions, about)
    data = about | {"output": output and str(output), "shapes": len(predictions)} | figures
    data["left_out"] = {failure.name: failure.reason for failure in failures}
    if output is None:
        data["predictions"] = [prediction.as_dict() for prediction in predictions]
    where = f"saved in {output}: " if output else ""
    line = f"{where}{counted(len(predictions), 'shape')} in {figures['seconds']:.1f} s"
    left_out = [f"left out {failure.name}: {failure.reason}" for failure in failures]
    return Result(data, *table, line, *notes, *left_out)


def _classes(guesses: "Sequence[Guess]") -> list[str | Table]:
    """A table for each of a few shapes, or a line for each of many."""
    text: list[str | Table] = []
    if len(guesses) <= FEW:
        for guess in guesses:
            how = f"; {DO_NOT_TRUST}" * guess.do_not_trust
            text.append(f"{guess.name}: {counted(guess.points, 'point')}{how}")
            text.append([{"class": name, "%": f"{100 * share:.1f}"} for name, share in guess.likeliest])
        return text
    rows = []
    for guess in guesses:
        name, probability = guess.likeliest[0]
        row = {"shape": guess.name, "class": name, "%": f"{100 * probability:.1f}", "points": guess.points}
        rows.append(row | {"": "do not trust" * guess.do_not_trust})
    return [rows]


def _numbers(estimates: "Sequence[ShapeEstimate]", interval: str) -> Table:
    rows = []
    for estimate in estimates:
        row = {"shape": estimate.name}
        for target, (value, low, high) in estimate.values.items():
            row |= {target: f"{value:.4g}", f"{target}: {interval}": f"{low:.4g} to {high:.4g}"}
        rows.append(row)
    return rows
