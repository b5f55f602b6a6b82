"""Predictions and embeddings of shapes in files, and tables of the results."""

import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.data.axes import FileUp
from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.point_sets import PointSets
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.predictions import warn_of_preparation
from pointset.runs.atomic import checked_suffix, write_atomically
from pointset.runs.spreadsheets import as_csv
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import SETS_AT_ONCE, Prediction, embed_rows, padded_batches, predict, prepared_batches

BEST = 5
"""Number of classes listed for each shape."""
PREDICTION_DIGITS = 6
EMBEDDING_SUFFIXES = (".npz", ".csv")


@dataclass(frozen=True)
class Guess:
    """The prediction of a model for one shape."""

    name: str
    """Path of the file, or its path within a folder of shapes. For a dataset, it is the name of the shape."""
    likeliest: tuple[tuple[str, float], ...]
    """At most five classes with their probabilities, the most likely class first."""
    entropy: float
    """Entropy of the probabilities of all classes, in nats."""
    points: int
    """Number of points in the model's input."""
    true_class: str = ""
    """The true class, spelled as in the model; empty if it is unknown or not a class of the model."""
    low_confidence: bool = False
    """True if the highest probability is below 50 %. If `distance` is above 1, the threshold is 50 % * `distance`."""
    distance: float | None = None
    """Distance to the training shapes. A distance of 1 is typical, and one above 2 out-of-distribution. None if the
    model does not compute distances."""

    def as_dict(self) -> dict[str, Any]:
        """Return the prediction as plain data, for JSON."""
        classes = [{"class": name, "probability": short(probability)} for name, probability in self.likeliest]
        content: dict[str, Any] = {"name": self.name, "true_class": self.true_class, "classes": classes}
        content |= {"entropy": short(self.entropy), "points": self.points, "low_confidence": self.low_confidence}
        return content if self.distance is None else content | {"distance": short(self.distance)}

    def as_row(self) -> dict[str, Any]:
        """Return one row of a table with the columns `class_1`, `probability_1`, `class_2`, ..."""
        row = self.as_dict()
        classes = row.pop("classes")
        numbered = {f"{key}_{rank}": each[key] for rank, each in enumerate(classes, 1) for key in each}
        return {"name": row.pop("name"), "true_class": row.pop("true_class")} | numbered | row


def guess(
    shapes: Sequence[ShapeFile], prediction: Prediction, classes: Sequence[str], points: Sequence[int] | ndarray
) -> list[Guess]:
    """Return the most likely classes of shapes. `points` are the numbers of points in the model's inputs.

    True classes are matched regardless of case, spaces, hyphens and underscores: "Night stand" matches "night_stand".
    """
    from scipy.special import entr

    own = {_plain(name): name for name in classes} | {name: name for name in classes}
    shares, logits = prediction.probabilities, prediction.logits.cpu().numpy()
    # Slightly different logits can have the same probability, so classes are sorted by logits.
    order = np.argsort(-logits, axis=1, kind="stable")[:, :BEST]
    entropies, low_confidence = entr(shares).sum(axis=1), prediction.low_confidence
    return [
        Guess(
            name=shape.name,
            likeliest=tuple((classes[index], float(shares[row, index])) for index in order[row]),
            entropy=float(entropies[row]),
            points=int(points[row]),
            true_class=own.get(shape.true_class, own.get(_plain(shape.true_class), "")),
            low_confidence=bool(low_confidence[row]),
            distance=None if prediction.distances is None else float(prediction.distances[row]),
        )
        for row, shape in enumerate(shapes)
    ]


def accuracy_of(guesses: Sequence[Guess]) -> tuple[float, int]:
    """Return the accuracy on shapes with a known class, and the number of these shapes."""
    known = [guess for guess in guesses if guess.true_class]
    right = sum(guess.likeliest[0][0] == guess.true_class for guess in known)
    return (right / len(known) if known else 0.0), len(known)


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def write_guesses(path: Path, guesses: Sequence[Guess]) -> None:
    """Write predictions as CSV, atomically."""
    text = as_csv([guess.as_row() for guess in guesses])
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8", errors="backslashreplace"))


def short(number: float) -> float | None:
    """Return a number rounded to a few digits, for files; None if it is not finite."""
    return float(f"{number:.{PREDICTION_DIGITS}g}") if np.isfinite(number) else None


T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A file that cannot be used."""

    name: str
    reason: str


def classify_files(
    model: Classifier, shapes: Iterable[ShapeFile], *, up: str = "auto", remove_outliers: bool | None = None
) -> Iterator[Guess | Failure]:
    """Classify the meshes and point clouds in files, which the model prepares; for options, see `Classifier.prepare`.

    A prediction or a failure is yielded for each file, in order. A failure does not stop the others.
    """

    def classify(files: Sequence[ShapeFile], clouds: Sequence[Tensor]) -> Iterator[Guess | Failure]:
        prediction = predict(model, padded_batches(clouds))
        guesses = guess(files, prediction, model.classes or [], [*map(len, clouds)])
        for one, finite in zip(guesses, prediction.logits.isfinite().all(dim=1).tolist(), strict=True):
            yield one if finite else Failure(one.name, f"{one.name}: the model's logits are not finite")

    return for_prepared(model, shapes, classify, up=up, remove_outliers=remove_outliers)


def for_prepared(
    model: Classifier,
    shapes: Iterable[ShapeFile],
    compute: Callable[[Sequence[ShapeFile], Sequence[Tensor]], Iterable[T]],
    *,
    up: str,
    remove_outliers: bool | None,
) -> Iterator[T | Failure]:
    """Yield, for each shape, the result of `compute` for the shape and its prepared points [n, d], or a failure."""
    shapes = iter(shapes)
    while block := [*itertools.islice(shapes, SETS_AT_ONCE)]:
        prepared: list[Tensor | Failure] = []
        for shape in block:
            try:
                prepared.append(model.prepare(shape.path, up=up, remove_outliers=remove_outliers).points)
            except (PointsetError, OSError) as error:
                prepared.append(Failure(shape.name, one_line(error, 2 * REPEATED)))
        usable = [(shape, points) for shape, points in zip(block, prepared, strict=True) if isinstance(points, Tensor)]
        results = iter(compute(*zip(*usable, strict=True)) if usable else ())
        for points in prepared:
            yield points if isinstance(points, Failure) else next(results)


def embed(model: nn.Module, sets: Any, *, batch_size: int = SETS_AT_ONCE) -> Float[ndarray, "N d"]:
    """Embed point sets with a trained model; see `Classifier.embed`.

    Args:
        model: a model of the zoo; its device is used.
        sets: `PointSets`, whose fixed point sets are embedded, or clouds as in `model.predict`.
        batch_size: sets per forward pass.

    Returns:
        Embeddings [N, d] as float32, in the order of the sets. d depends on the model.

    Raises:
        InputError: if the model has no encoder with a pooling; if `sets` are not clouds.
        PointsetError: if sets and model have different numbers of inputs per point.

    Example:
        >>> pointset.evaluation.embed(model, test).shape
        (8, 16)
    """
    if not isinstance(sets, PointSets):
        if not isinstance(model, Classifier):
            raise PointsetError(f"model must be a model of the zoo, got a {type(model).__name__}")
        return embed_rows(model, prepared_batches(model, sets, batch_size=batch_size)).cpu().numpy()
    sets.require_inputs(model)
    warn_of_preparation(model, sets)
    return embed_rows(model, sets, batch_size=batch_size).cpu().numpy()


def embed_files(
    model: Classifier, shapes: Iterable[ShapeFile], *, up: FileUp = "auto", remove_outliers: bool | None = None
) -> Iterator[tuple[ShapeFile, Float[ndarray, " d"]] | Failure]:
    """Yield each shape with its embedding, or a failure, in order. For the arguments, see `classify_files`."""

    def embed_all(files: Sequence[ShapeFile], clouds: Sequence[Tensor]) -> Iterator[tuple[ShapeFile, ndarray]]:
        return zip(files, embed_rows(model, padded_batches(clouds)).cpu().numpy(), strict=True)

    return for_prepared(model, shapes, embed_all, up=up, remove_outliers=remove_outliers)


def save_embeddings(path: Path, model: str, shapes: Sequence[ShapeFile], rows: Float[ndarray, "N d"]) -> None:
    """Write embeddings, the model's name, and the names, classes and paths of the shapes into a *.npz or *.csv file."""
    checked_suffix(path, EMBEDDING_SUFFIXES, "a file of embeddings")
    about = {"name": [shape.name for shape in shapes], "true_class": [shape.true_class for shape in shapes]}
    columns: dict[str, Any] = {**about, "path": [str(shape.path.resolve()) for shape in shapes]}

    def write(temporary: Path) -> None:
        if path.suffix.lower() == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, embedding=rows, model=model, **columns)
            return
        columns["model"] = [model] * len(shapes)
        columns.update({f"embedding_{number}": column for number, column in enumerate(rows.T.tolist())})
        lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
        temporary.write_text(as_csv(lines), encoding="utf-8")

    write_atomically(path, write)


def in_folders(paths: Iterable[Path]) -> list[ShapeFile]:
    """Return the shapes in files and folders. If `paths` is a single folder, names are relative to this folder.

    Raises:
        PointsetError: if a path is the folder of a run; if a folder has no shape.
    """
    listed, shapes = list(paths), list[ShapeFile]()
    for path in listed:
        if not path.is_dir():
            shapes.append(ShapeFile(path, str(path)))
            continue
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {shlex.quote(str(path))}")
        inside = list_shapes(path)
        prefix = "" if len(listed) == 1 else f"{path}/"
        shapes += [ShapeFile(shape.path, f"{prefix}{shape.name}", shape.true_class) for shape in inside]
    return shapes
