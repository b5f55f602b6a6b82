"""Classifying files: sampled meshes and small clouds in batches, large scans piece by piece."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.axes import UsualUp, turned_up
from pointset.data.catalogue.folders import LooseShape, list_shapes
from pointset.data.isolated import kept_points
from pointset.data.loading import file_up, is_cloud_file, load_shape_like, normalization_elsewhere
from pointset.data.normalize import normalize_chunks
from pointset.data.ragged import pad_sets
from pointset.data.readers.clouds import extent_fault
from pointset.data.readers.formats import MESH_SUFFIXES
from pointset.data.readers.paths import require_shape_file
from pointset.data.readers.scans import open_scan
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.novelty import Detector, Rows, last_inputs
from pointset.evaluation.shape_predictions import Guess, guess
from pointset.nn.modes import in_evaluation_mode
from pointset.streaming import StreamingError, check_streams, stream_logits
from pointset.zoo.predicting import padded_logits

SMALL = 16_384
"""Most points of a cloud that is not streamed although the model can."""
MOST_WHOLE = 100_000
"""Most points of a scan for a model that cannot stream."""
MOST_SQUARE = 10_000
"""The same for dgcnn, which keeps the distance of every two points: 0.4 GB."""
MOST_SETS, MOST_ROWS = 64, 65_536
"""Of a batch."""
MOST_PAIRS = 10**8
"""Pairs of points in a batch, for a model that cannot stream: it may keep something of each."""


@dataclass(frozen=True)
class Failure:
    """A file that cannot be used."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class _Scan:
    """The normalised points of a file that is read in pieces."""

    shape: LooseShape
    chunks: Callable[[], Iterable[Tensor]]
    points: int


class FileClassifier:
    """A model that classifies files of shapes, each as those that it was trained on.

    Attributes:
        classes: of the model.
        temperature: by which its logits are divided for probabilities.
        detector: says which shapes are unlike those of the training; None says nothing.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Mapping[str, Any],
        *,
        temperature: float = 1.0,
        detector: Detector | None = None,
        up: UsualUp = "auto",
        keep_outliers: bool = False,
    ) -> None:
        """Of a model, and of what run.json says of its data.

        Args:
            model: from `load_run`, on the device that is to compute.
            data: `description["data"]`.
            temperature: see the class.
            detector: see the class.
            up: the files' upward axis; see `load_shape_like`.
            keep_outliers: keep isolated points of clouds that fit into memory; see `pointset.data.isolated`.
        """
        self.up, self.keep_outliers = up, keep_outliers
        self.model, self.data, self.temperature, self.detector = model, dict(data), temperature, detector
        self.classes: list[str] = data["classes"]
        self.reason = ""
        """Why the model cannot stream; empty if it can."""
        try:
            check_streams(model)
        except StreamingError as error:
            self.reason = str(error)

    def __call__(self, shapes: Iterable[LooseShape]) -> Iterator[Guess | Failure]:
        """One answer for each shape, in their order; a file that cannot be used stops nothing."""
        waiting: list[tuple[LooseShape, Tensor]] = []
        for shape in shapes:
            ready: list[Guess | Failure] = []
            try:
                require_shape_file(shape.path)
                cloud = self._open(shape)
                if isinstance(cloud, Tensor):
                    if not self._fits(waiting, cloud):
                        yield from self._batch(waiting)
                        waiting = []
                    waiting.append((shape, cloud))
                    continue
                ready = [self._stream(cloud)]
            except (PointsetError, OSError) as error:
                ready = [Failure(shape.name, one_line(error, 2 * REPEATED))]
            yield from self._batch(waiting)
            waiting = []
            yield from ready
        yield from self._batch(waiting)

    def _open(self, shape: LooseShape) -> "Tensor | _Scan":
        """A file's points, normalised as those that the model was trained on; a large cloud is not read yet."""
        path = shape.path
        if path.suffix.lower() in MESH_SUFFIXES and not is_cloud_file(path):
            return load_shape_like(self.data, path, up=self.up).points
        features = self.data.get("features", ())
        scan = open_scan(path, features=features)
        if fault := extent_fault(piece[:, :3] for piece in scan()):
            raise PointsetError(f"{path}: the cloud {fault}")
        most = MOST_SQUARE if self.model.spec.name == "dgcnn" else MOST_WHOLE  # type: ignore[union-attr]
        if self.reason and scan.count > most:
            raise PointsetError(f"{path} has {scan.count:,} points, more than {most:,}, and {self.reason}")
        now, wanted = file_up(self.data, path, self.up)
        small = scan.count <= SMALL or bool(self.reason)
        clouds: Callable[[], Iterable[np.ndarray]] = scan
        if small:
            whole = np.concatenate([*scan()])
            kept = whole if self.keep_outliers else whole[kept_points(whole[:, :3], str(path))]

            clouds = partial(iter, (kept,))

        def pieces() -> Iterator[np.ndarray]:
            return (turned_up(piece, now, wanted, normals="normals" in features) for piece in clouds())

        chunks = normalize_chunks(pieces, normalization_elsewhere(self.data), features=len(scan.columns) - 3)
        if small:
            return torch.cat([piece.to(torch.float32, copy=True) for piece in chunks()])
        return _Scan(shape, chunks, scan.count)

    def _fits(self, waiting: Sequence[tuple[LooseShape, Tensor]], further: Tensor) -> bool:
        sets = len(waiting) + 1
        largest = max([len(further), *(len(cloud) for _, cloud in waiting)])
        pairs = sets * largest**2 if self.reason else 0
        return sets == 1 or (sets <= MOST_SETS and sets * largest <= MOST_ROWS and pairs <= MOST_PAIRS)

    def _batch(self, waiting: Sequence[tuple[LooseShape, Tensor]]) -> Iterator[Guess | Failure]:
        if not waiting:
            return iter(())
        points, mask = pad_sets([cloud for _, cloud in waiting])
        device = next(self.model.parameters()).device
        sizes = [len(cloud) for _, cloud in waiting]
        with torch.inference_mode(), in_evaluation_mode(self.model), last_inputs(self.model) as rows:
            logits = padded_logits(self.model, points.to(device), None if mask is None else mask.to(device)).float()
            return self._answers([shape for shape, _ in waiting], logits, rows, sizes, streamed=False)

    def _stream(self, cloud: _Scan) -> Guess | Failure:
        with last_inputs(self.model) as rows:
            logits = stream_logits(self.model, cloud.chunks)
        return next(self._answers([cloud.shape], logits, rows, [cloud.points], streamed=True))

    def _answers(
        self, shapes: Sequence[LooseShape], logits: Tensor, rows: Rows, sizes: Sequence[int], streamed: bool
    ) -> Iterator[Guess | Failure]:
        finite, plain = logits.isfinite().all(dim=1).tolist(), logits.nan_to_num().float().cpu().numpy()
        strange = None if self.detector is None else (self.detector.scores(plain, rows), self.detector.threshold)
        found = guess(
            [shape.name for shape in shapes],
            plain,
            self.classes,
            sizes,
            true_classes=[shape.true_class for shape in shapes],
            streamed=streamed,
            temperature=self.temperature,
            strangeness=strange,
        )
        for shape, one, whole in zip(shapes, found, finite, strict=True):
            yield one if whole else Failure(shape.name, f"{shape.path}: the model's logits are not finite")


def in_folders(paths: Iterable[Path]) -> list[LooseShape]:
    """The files among paths, and the shapes in the folders among them; see `list_shapes`.

    Of one folder alone names are paths inside it.
    """
    given = list(paths)
    found = []
    for path in given:
        if not path.is_dir():
            found.append(LooseShape(path, str(path)))
            continue
        inside = list_shapes(path)
        prefix = "" if len(given) == 1 else f"{path}/"
        found += [LooseShape(one.path, f"{prefix}{one.name}", one.true_class) for one in inside]
    return found
