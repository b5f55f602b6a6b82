"""Classifying files: sampled meshes and small clouds in batches, large scans piece by piece."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pointset.data.axes import turned_up
from pointset.data.catalogue.folders import LooseShape, list_shapes
from pointset.data.isolated import kept_points
from pointset.data.loading import file_up, is_cloud_file, load_shape_like, normalization_elsewhere
from pointset.data.normalize import normalize_chunks
from pointset.data.readers.clouds import extent_fault
from pointset.data.readers.formats import require_shape_file
from pointset.data.readers.scans import open_scan
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, guess
from pointset.streaming import StreamingError, check_streams
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import BATCH, padded_batches, predict, predict_in_pieces

SMALL = 16_384
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
    def of(cls, shape: LooseShape, error: Exception) -> "Failure":
        """The failure of a shape with this error."""
        return cls(shape.name, one_line(error, 2 * REPEATED))


@dataclass(frozen=True, eq=False)
class Scan:
    """A normalised cloud that is read in pieces."""

    chunks: Callable[[], Iterable[Tensor]]
    points: int


def classify_files(
    model: Classifier,
    data: Mapping[str, Any],
    shapes: Iterable[LooseShape],
    *,
    up: str = "auto",
    keep_outliers: bool = False,
) -> Iterator[Guess | Failure]:
    """Classify files of shapes, each prepared like those that a model was trained on.

    Args:
        model: from `load_run`, on the device that is to compute.
        data: `description["data"]` of its run.
        shapes: meshes and point clouds; small clouds are classified in batches, large scans are read in pieces.
        up: the files' upward axis; see `load_shape_like`.
        keep_outliers: keep isolated points of clouds that fit into memory; see `pointset.data.isolated`.

    Yields:
        For each shape, in their order, its prediction, or why it cannot be used: such a file stops nothing.
    """
    waiting: list[tuple[LooseShape, Tensor | Guess | Failure]] = []
    for shape in shapes:
        answer: Tensor | Guess | Failure
        try:
            cloud = _open(model, dict(data), shape.path, up, keep_outliers)
            answer = cloud if isinstance(cloud, Tensor) else _stream(model, data["classes"], shape, cloud)
        except (PointsetError, OSError) as error:
            answer = Failure.of(shape, error)
        waiting.append((shape, answer))
        if len(waiting) == BATCH or isinstance(answer, Guess):
            yield from _answers(model, data["classes"], waiting)
            waiting = []
    yield from _answers(model, data["classes"], waiting)


def _open(model: Classifier, data: dict[str, Any], path: Path, up: str, keep_outliers: bool) -> Tensor | Scan:
    """A file's points, normalised as those that the model was trained on; a large cloud is not read yet."""
    require_shape_file(path)
    if not is_cloud_file(path):
        return load_shape_like(data, path, up=up).points
    features = data.get("features", ())
    scan = open_scan(path, features=features)
    if fault := extent_fault(piece[:, :3] for piece in scan()):
        raise PointsetError(f"{path}: the cloud {fault}")
    reason = _why_not_streamed(model)
    most = MOST_SQUARE if model.spec.name == "dgcnn" else MOST_WHOLE  # type: ignore[union-attr]
    if reason and scan.count > most:
        raise PointsetError(f"{path} has {scan.count:,} points, more than {most:,}, and {reason}")
    small = scan.count <= SMALL or bool(reason)
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
    return Scan(chunks, scan.count)


def _why_not_streamed(model: Classifier) -> str:
    try:
        check_streams(model)
    except StreamingError as error:
        return str(error)
    return ""


def _stream(model: Classifier, classes: Sequence[str], shape: LooseShape, scan: Scan) -> Guess:
    prediction = predict_in_pieces(model, scan.chunks)
    (answer,) = guess([shape], prediction, classes, [scan.points], streamed=True)
    return answer


def _answers(
    model: Classifier,
    classes: Sequence[str],
    waiting: Sequence[tuple[LooseShape, Tensor | Guess | Failure]],
) -> Iterator[Guess | Failure]:
    """The answers for shapes, of which clouds go through the model together."""
    shapes = [shape for shape, cloud in waiting if isinstance(cloud, Tensor)]
    clouds = [cloud for _, cloud in waiting if isinstance(cloud, Tensor)]
    together: Iterator[Guess] = iter(())
    if clouds:
        prediction = predict(model, padded_batches(clouds))
        together = iter(guess(shapes, prediction, classes, [*map(len, clouds)]))
    for shape, answer in waiting:
        given = next(together) if isinstance(answer, Tensor) else answer
        finite = isinstance(given, Failure) or not math.isnan(given.entropy)
        yield given if finite else Failure(shape.name, f"{shape.path}: the model's logits are not finite")


def in_folders(paths: Iterable[Path]) -> list[LooseShape]:
    """The files among paths, and the shapes in the folders among them; see `list_shapes`.

    Of one folder alone names are paths inside it.
    """
    listed = list(paths)
    shapes = []
    for path in listed:
        if not path.is_dir():
            shapes.append(LooseShape(path, str(path)))
            continue
        inside = list_shapes(path)
        prefix = "" if len(listed) == 1 else f"{path}/"
        shapes += [LooseShape(shape.path, f"{prefix}{shape.name}", shape.true_class) for shape in inside]
    return shapes
