"""Predictions for files and for all their points: meshes and small clouds in batches, large scans in pieces."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from pointset.data.axes import turned_up
from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.loading import file_up, kept_points, load_shape_like, normalization_elsewhere
from pointset.data.normalize import normalize_chunks
from pointset.data.readers.clouds import AXES, extent_fault, feature_columns
from pointset.data.readers.formats import is_mesh_file, require_shape_file
from pointset.data.readers.scans import open_scan
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, ShapeEstimate, estimates_of, guess
from pointset.streaming import StreamingError, check_streams, stream_rows
from pointset.zoo.classifiers import Classifier, Segmenter, SetModel
from pointset.zoo.predicting import SETS_AT_ONCE, Prediction, padded_batches, predict, predict_in_pieces, predict_points
from pointset.zoo.regressors import INTERVAL_LEVEL, Regressor

T = TypeVar("T")
SMALL_CLOUD = 16_384
"""Most points of a cloud that is not streamed although the model can."""
MOST_WHOLE = 100_000
"""Most points of a scan for a model that cannot stream."""
MOST_SQUARE = 10_000
"""The same for dgcnn, which keeps the distance of every two points: 0.4 GB."""


@dataclass(frozen=True)
class Failure:
    """A file that cannot be used."""

    name: str
    reason: str

    @classmethod
    def of(cls, shape: ShapeFile, error: Exception) -> "Failure":
        """The failure of a shape with this error."""
        return cls(shape.name, one_line(error, 2 * REPEATED))


@dataclass(frozen=True, eq=False)
class StreamedCloud:
    """A normalised cloud that is read in pieces."""

    chunks: Callable[[], Iterable[Tensor]]
    points: int


def classify_files(
    model: Classifier, data: Mapping[str, Any], shapes: Iterable[ShapeFile], **reading: Any
) -> Iterator[Guess | Failure]:
    """Classify meshes and point clouds, each prepared like those that a model was trained on.

    Small clouds are classified in batches, large scans are read in pieces. `data` is `description["data"]` of the
    model's run; for `up` and `keep_outliers`, see `load_shape_like`. Yields for each shape, in their order, its
    prediction, or why it cannot be used: such a file stops nothing.
    """

    def answer(shapes: Sequence[ShapeFile], prediction: Prediction, points: Sequence[int], how: bool) -> list[Guess]:
        return guess(shapes, prediction, data["classes"], points, streamed=how)

    return answer_files(model, data, shapes, answer, **reading)


def estimate_files(
    model: Regressor,
    data: Mapping[str, Any],
    shapes: Iterable[ShapeFile],
    level: float = INTERVAL_LEVEL,
    **reading: Any,
) -> Iterator[ShapeEstimate | Failure]:
    """Predict the numbers of files of shapes, in the units of the files, with intervals; see `classify_files`."""

    def answer(
        shapes: Sequence[ShapeFile], prediction: Prediction, points: Sequence[int], _: bool
    ) -> list[ShapeEstimate]:
        return estimates_of([shape.name for shape in shapes], model.numbers(prediction.logits, level), points)

    return answer_files(model, {**data, "normalize": "none"}, shapes, answer, **reading)


def answer_files(
    model: SetModel,
    data: Mapping[str, Any],
    shapes: Iterable[ShapeFile],
    answer: Callable[[Sequence[ShapeFile], Prediction, Sequence[int], bool], Sequence[T]],
    *,
    up: str = "auto",
    keep_outliers: bool = False,
) -> Iterator[T | Failure]:
    """The answers that `answer(shapes, prediction, points, read in pieces)` makes for files; see `classify_files`."""
    waiting: list[tuple[ShapeFile, Tensor]] = []

    def answers() -> Iterator[T | Failure]:
        """The answers for the waiting clouds, which go through the model together."""
        if waiting:
            shapes, clouds = zip(*waiting, strict=True)
            waiting.clear()
            prediction = predict(model, padded_batches(clouds))
            yield from _finite(shapes, prediction, answer(shapes, prediction, [*map(len, clouds)], False))

    for shape in shapes:
        try:
            cloud = open_shape(model, data, shape.path, up, keep_outliers)
            prediction = None if isinstance(cloud, Tensor) else predict_in_pieces(model, cloud.chunks)
        except (PointsetError, OSError) as error:
            yield from answers()
            yield Failure.of(shape, error)
            continue
        if isinstance(cloud, Tensor):
            waiting.append((shape, cloud))
            if len(waiting) == SETS_AT_ONCE:
                yield from answers()
        elif prediction is not None:
            yield from answers()
            yield from _finite([shape], prediction, answer([shape], prediction, [cloud.points], True))
    yield from answers()


def _finite(shapes: Sequence[ShapeFile], prediction: Prediction, answers: Sequence[T]) -> Iterator[T | Failure]:
    """The answers, or failures where the outputs of the model are not finite."""
    for shape, one, finite in zip(shapes, answers, prediction.logits.isfinite().all(dim=1).tolist(), strict=True):
        yield one if finite else Failure(shape.name, f"{shape.path}: the model's logits are not finite")


def open_shape(
    model: SetModel, data: Mapping[str, Any], path: Path, up: str, keep_outliers: bool
) -> Tensor | StreamedCloud:
    """A file's points, normalised as those that the model was trained on; a large cloud is not read yet."""
    require_shape_file(path)
    if is_mesh_file(path):
        return load_shape_like(data, path, up=up).points
    features = data.get("features", ())
    scan = open_scan(path, features=features)
    if fault := extent_fault(piece[:, :3] for piece in scan()):
        raise PointsetError(f"{path}: the cloud {fault}")
    reason = _why_not_streamed(model)
    most = MOST_SQUARE if model.spec.name == "dgcnn" else MOST_WHOLE  # type: ignore[union-attr]
    if reason and scan.count > most:
        raise PointsetError(f"{path} has {scan.count:,} points, more than {most:,}, and {reason}")
    small = scan.count <= SMALL_CLOUD or bool(reason)
    now, wanted = file_up(data, path, up)
    clouds: Callable[[], Iterable[np.ndarray]] = scan
    if small:
        whole = np.concatenate([*scan()])
        clouds = partial(iter, (whole if keep_outliers else whole[kept_points(whole[:, :3], str(path))],))

    def pieces() -> Iterator[np.ndarray]:
        return (turned_up(piece, now, wanted, normals="normals" in features) for piece in clouds())

    chunks = normalize_chunks(pieces, normalization_elsewhere(data), features=len(scan.columns) - 3)
    if small:
        return torch.cat([piece.to(torch.float32, copy=True) for piece in chunks()])
    return StreamedCloud(chunks, scan.count)


def _why_not_streamed(model: SetModel) -> str:
    if isinstance(model, Regressor):
        return "a regressor needs the whole cloud at once, for its size: give fewer points"
    try:
        check_streams(model)
    except StreamingError as error:
        return str(error)
    return ""


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
    cloud = open_shape(model, data, path, up, keep_outliers=True)
    if isinstance(cloud, Tensor):
        blocks: Iterable[Tensor] = predict_points(model, padded_batches([cloud]))
    else:
        blocks = stream_rows(model, cloud.chunks)
    scan = open_scan(path)
    columns = (*AXES, *(() if column is None else feature_columns(column, scan.names)))
    for logits, table in _aligned(blocks, scan.pieces(columns)):
        truth = None if column is None else table[:, 3].astype(np.int64)
        yield LabelledPoints(table[:, :3], _probabilities(model, logits, path), truth, now)


def _aligned(blocks: Iterable[Tensor], pieces: Iterator[ndarray]) -> Iterator[tuple[Tensor, ndarray]]:
    """Blocks of logits, each with its rows of the pieces, which have other sizes."""
    rows = next(pieces)
    for logits in blocks:
        while len(rows) < len(logits):
            rows = np.concatenate([rows, next(pieces)])
        yield logits, rows[: len(logits)]
        rows = rows[len(logits) :]


def _probabilities(model: Segmenter, logits: Tensor, path: Path) -> ndarray:
    if not logits.isfinite().all():
        raise PointsetError(f"{path}: the model's logits are not finite: check whether the weights are")
    shares: ndarray = torch.softmax(logits.float() / model.temperature, dim=1).cpu().numpy()
    return shares
