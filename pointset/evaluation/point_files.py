"""Labels for every point of files: sampled meshes and small clouds at once, large scans piece by piece."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from pointset.data.loading import file_up, load_shape_like
from pointset.data.readers.clouds import AXES, feature_columns
from pointset.data.readers.formats import is_mesh_file, require_shape_file
from pointset.data.readers.scans import open_scan
from pointset.errors import PointsetError
from pointset.evaluation.files import open_shape
from pointset.streaming import stream_rows
from pointset.zoo.predicting import padded_batches, predict_points
from pointset.zoo.segmenters import Segmenter


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
    now, wanted = file_up(dict(data), path, up)
    if is_mesh_file(path):
        if column is not None:
            raise PointsetError(f"{path} is a mesh, whose points have no column {column}: leave it out")
        shape = load_shape_like(dict(data), path, up=up)
        (logits,) = predict_points(model, padded_batches([shape.points]))
        yield LabelledPoints(shape.raw, _probabilities(model, logits, path), up=wanted)
        return
    cloud = open_shape(model, dict(data), path, up, keep_outliers=True)
    if isinstance(cloud, Tensor):
        blocks: Iterable[Tensor] = predict_points(model, padded_batches([cloud]))
    else:
        blocks = stream_rows(model, cloud.chunks)
    scan = open_scan(path)
    columns = (*AXES, *(() if column is None else feature_columns(column, [*scan.numbers])))
    rows = _Rows(scan.pieces(columns), len(columns))
    for logits in blocks:
        table = rows.take(len(logits))
        truth = None if column is None else table[:, 3].astype(np.int64)
        yield LabelledPoints(table[:, :3], _probabilities(model, logits, path), truth, now)


class _Rows:
    """Rows of pieces, taken in other numbers."""

    def __init__(self, pieces: Iterator[ndarray], width: int) -> None:
        self.pieces, self.waiting = pieces, np.empty((0, width))

    def take(self, count: int) -> ndarray:
        """The next rows [count, width]."""
        parts = [self.waiting]
        while sum(map(len, parts)) < count:
            parts.append(next(self.pieces))
        rows = np.concatenate(parts)
        self.waiting = rows[count:]
        return rows[:count]


def _probabilities(model: Segmenter, logits: Tensor, path: Path) -> ndarray:
    if not logits.isfinite().all():
        raise PointsetError(f"{path}: the model's logits are not finite: check whether the weights are")
    shares: ndarray = torch.softmax(logits.float() / model.temperature, dim=1).cpu().numpy()
    return shares
