"""Predictions for files of shapes."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.loading import load_shape_like
from pointset.data.readers.formats import is_mesh_file, require_shape_file
from pointset.data.readers.reading import read_columns
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, guess
from pointset.zoo.classifiers import Classifier, SetModel
from pointset.zoo.predicting import SETS_AT_ONCE, Prediction, padded_batches, predict

T = TypeVar("T")
MOST_POINTS = 16_384
"""Most points of a cloud that are all used; of a larger one a random part is, as many points as in training."""


@dataclass(frozen=True)
class Failure:
    """A file that cannot be used."""

    name: str
    reason: str

    @classmethod
    def of(cls, shape: ShapeFile, error: Exception) -> "Failure":
        """The failure of a shape with this error."""
        return cls(shape.name, one_line(error, 2 * REPEATED))


def classify_files(
    model: Classifier, data: Mapping[str, Any], shapes: Iterable[ShapeFile], **reading: Any
) -> Iterator[Guess | Failure]:
    """Classify meshes and point clouds, each prepared like those that a model was trained on.

    `data` is `description["data"]` of the model's run; for `up` and `keep_outliers`, see `load_shape_like`. Yields for
    each shape, in their order, its prediction, or why it cannot be used: such a file stops nothing.
    """

    def answer(shapes: Sequence[ShapeFile], prediction: Prediction, points: Sequence[int]) -> list[Guess]:
        return guess(shapes, prediction, data["classes"], points)

    return answer_files(model, data, shapes, answer, **reading)


def answer_files(
    model: SetModel,
    data: Mapping[str, Any],
    shapes: Iterable[ShapeFile],
    answer: Callable[[Sequence[ShapeFile], Prediction, Sequence[int]], Sequence[T]],
    *,
    up: str = "auto",
    keep_outliers: bool = False,
) -> Iterator[T | Failure]:
    """The answers that `answer(shapes, prediction, points)` makes for files; see `classify_files`."""
    waiting: list[tuple[ShapeFile, Tensor]] = []

    def answers() -> Iterator[T | Failure]:
        """The answers for the waiting clouds, which go through the model together."""
        if waiting:
            shapes, clouds = zip(*waiting, strict=True)
            waiting.clear()
            prediction = predict(model, padded_batches(clouds))
            yield from _finite(shapes, prediction, answer(shapes, prediction, [*map(len, clouds)]))

    for shape in shapes:
        try:
            cloud = open_shape(data, shape.path, up, keep_outliers)
        except (PointsetError, OSError) as error:
            yield from answers()
            yield Failure.of(shape, error)
            continue
        waiting.append((shape, cloud))
        if len(waiting) == SETS_AT_ONCE:
            yield from answers()
    yield from answers()


def _finite(shapes: Sequence[ShapeFile], prediction: Prediction, answers: Sequence[T]) -> Iterator[T | Failure]:
    """The answers, or failures where the outputs of the model are not finite."""
    for shape, one, finite in zip(shapes, answers, prediction.logits.isfinite().all(dim=1).tolist(), strict=True):
        yield one if finite else Failure(shape.name, f"{shape.path}: the model's logits are not finite")


def open_shape(data: Mapping[str, Any], path: Path, up: str, keep_outliers: bool) -> Tensor:
    """A file's points, prepared as those that the model was trained on; of a large cloud a random part."""
    require_shape_file(path)
    points = None
    if not is_mesh_file(path):
        count = len(read_columns(path, data.get("features", ()))["x"])
        points = count if count <= MOST_POINTS else None
        if points is None:
            warnings.warn(f"{path}: a random {data['points']:,} of its {count:,} points are used", stacklevel=2)
    return load_shape_like(data, path, points=points, up=up, keep_outliers=keep_outliers).points


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
