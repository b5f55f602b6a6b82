"""Predictions for files of shapes, and for all points of a file."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.loading import file_up, load_shape_like
from pointset.data.readers.formats import is_mesh_file, require_shape_file
from pointset.data.readers.reading import read_cloud, read_columns
from pointset.data.sampling import downsample
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, ShapeEstimate, estimates_of, guess
from pointset.zoo.classifiers import Classifier, Segmenter, SetModel
from pointset.zoo.predicting import SETS_AT_ONCE, Prediction, padded_batches, predict, predict_points
from pointset.zoo.regressors import INTERVAL_LEVEL, Regressor

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


def estimate_files(
    model: Regressor,
    data: Mapping[str, Any],
    shapes: Iterable[ShapeFile],
    level: float = INTERVAL_LEVEL,
    **reading: Any,
) -> Iterator[ShapeEstimate | Failure]:
    """Predict the numbers of files of shapes, in the units of the files, with intervals; see `classify_files`."""

    def answer(shapes: Sequence[ShapeFile], prediction: Prediction, points: Sequence[int]) -> list[ShapeEstimate]:
        return estimates_of([shape.name for shape in shapes], model.numbers(prediction.logits, level), points)

    return answer_files(model, {**data, "normalize": "none"}, shapes, answer, **reading)


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


@dataclass(frozen=True, eq=False)
class LabelledPoints:
    """Some points of a file, in its order, and what a model says of each."""

    points: Float[ndarray, "n 3"]
    """In the units and axes of the file; those sampled of a mesh have the upward axis of the model's shapes."""
    probabilities: Float[ndarray, "n classes"]
    truth: Int[ndarray, " n"] | None = None
    """The labels in the file, if a column of them was asked for."""
    up: str = "z"
    """The upward axis of the points."""

    @property
    def labels(self) -> Int[ndarray, " n"]:
        """The index of the most likely class."""
        return self.probabilities.argmax(axis=1)


def label_points(
    model: Segmenter, data: Mapping[str, Any], path: Path, *, up: str = "auto", column: str | None = None
) -> Iterator[LabelledPoints]:
    """Yield every point of a file with its label, in blocks and in order; arguments as of `classify_files`."""
    require_shape_file(path)
    now, wanted = file_up(data, path, up)
    if is_mesh_file(path):
        if column is not None:
            raise PointsetError(f"{path} is a mesh, whose points have no column {column}: leave it out")
        shape = load_shape_like(data, path, up=up)
        (logits,) = predict_points(model, padded_batches([shape.points]))
        yield LabelledPoints(shape.raw, _probabilities(model, logits, path), up=wanted)
        return
    cloud = read_cloud(path, labels=column)
    shape = load_shape_like(data, path, points=len(cloud.points), up=up, keep_outliers=True)
    order = downsample(shape.raw, len(shape.raw), seed=0)  # the points were put in this order
    (logits,) = predict_points(model, padded_batches([shape.points]))
    logits = logits[torch.as_tensor(order.argsort())]
    yield LabelledPoints(cloud.points + cloud.corner, _probabilities(model, logits, path), cloud.labels, now)


def _probabilities(model: Segmenter, logits: Tensor, path: Path) -> ndarray:
    if not logits.isfinite().all():
        raise PointsetError(f"{path}: the model's logits are not finite: check whether the weights are")
    shares: ndarray = torch.softmax(logits.float() / model.temperature, dim=1).cpu().numpy()
    return shares
