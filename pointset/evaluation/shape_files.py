"""Predictions for files of shapes."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, guess
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import SETS_AT_ONCE, padded_batches, predict

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A file that cannot be used."""

    name: str
    reason: str


def classify_files(
    model: Classifier, shapes: Iterable[ShapeFile], *, up: str = "auto", keep_outliers: bool = False
) -> Iterator[Guess | Failure]:
    """Classify meshes and point clouds, each prepared by the model; for `up` and `keep_outliers`, see `prepare`.

    Yields for each shape, in their order, its prediction, or why it cannot be used: such a file stops nothing.
    """

    def classify(files: Sequence[ShapeFile], clouds: Sequence[Tensor]) -> Iterator[Guess | Failure]:
        prediction = predict(model, padded_batches(clouds))
        guesses = guess(files, prediction, model.classes or [], [*map(len, clouds)])
        for one, finite in zip(guesses, prediction.logits.isfinite().all(dim=1).tolist(), strict=True):
            yield one if finite else Failure(one.name, f"{one.name}: the model's logits are not finite")

    return for_prepared(model, shapes, classify, up=up, keep_outliers=keep_outliers)


def for_prepared(
    model: Classifier,
    shapes: Iterable[ShapeFile],
    compute: Callable[[Sequence[ShapeFile], Sequence[Tensor]], Iterable[T]],
    *,
    up: str,
    keep_outliers: bool,
) -> Iterator[T | Failure]:
    """Yield what is computed of some shapes and their prepared points [n, d], or why a file cannot be used."""
    shapes = iter(shapes)
    while block := [*itertools.islice(shapes, SETS_AT_ONCE)]:
        prepared: list[Tensor | Failure] = []
        for shape in block:
            try:
                prepared.append(model.preparation.prepare(shape.path, up=up, keep_outliers=keep_outliers).points)
            except (PointsetError, OSError) as error:
                prepared.append(Failure(shape.name, one_line(error, 2 * REPEATED)))
        usable = [(shape, points) for shape, points in zip(block, prepared, strict=True) if isinstance(points, Tensor)]
        results = iter(compute(*zip(*usable, strict=True)) if usable else ())
        for points in prepared:
            yield points if isinstance(points, Failure) else next(results)


def in_folders(paths: Iterable[Path]) -> list[ShapeFile]:
    """The files among paths, and the shapes in folders; of one folder alone names are paths inside it.

    Raises:
        PointsetError: a path is the folder of a run, or a folder has no shape.
    """
    listed = list(paths)
    shapes = []
    for path in listed:
        if not path.is_dir():
            shapes.append(ShapeFile(path, str(path)))
            continue
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
        inside = list_shapes(path)
        prefix = "" if len(listed) == 1 else f"{path}/"
        shapes += [ShapeFile(shape.path, f"{prefix}{shape.name}", shape.true_class) for shape in inside]
    return shapes
