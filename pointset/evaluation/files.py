"""Predictions for files of shapes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.preparation import Preparation
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.shape_predictions import Guess, guess
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import SETS_AT_ONCE, padded_batches, predict


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
    model: Classifier, shapes: Iterable[ShapeFile], *, up: str = "auto", keep_outliers: bool = False
) -> Iterator[Guess | Failure]:
    """Classify meshes and point clouds, each prepared by the model; for `up` and `keep_outliers`, see `prepare`.

    Yields for each shape, in their order, its prediction, or why it cannot be used: such a file stops nothing.
    """
    waiting: list[tuple[ShapeFile, Tensor]] = []
    for shape in shapes:
        points = read_points(model.preparation, shape, up=up, keep_outliers=keep_outliers)
        if isinstance(points, Failure):
            yield from _classified(model, waiting)
            yield points
            continue
        waiting.append((shape, points))
        if len(waiting) == SETS_AT_ONCE:
            yield from _classified(model, waiting)
    yield from _classified(model, waiting)


def read_points(
    preparation: Preparation, shape: ShapeFile, *, up: str = "auto", keep_outliers: bool = False
) -> Tensor | Failure:
    """The prepared points [n, d] of a file."""
    try:
        return preparation.prepare(shape.path, up=up, keep_outliers=keep_outliers).points
    except (PointsetError, OSError) as error:
        return Failure.of(shape, error)


def _classified(model: Classifier, waiting: list[tuple[ShapeFile, Tensor]]) -> Iterator[Guess | Failure]:
    """The predictions for the waiting shapes, which go through the model together; none waits any more."""
    if not waiting:
        return
    shapes, clouds = zip(*waiting, strict=True)
    waiting.clear()
    prediction = predict(model, padded_batches(clouds))
    finite = prediction.logits.isfinite().all(dim=1).tolist()
    for shape, one, usable in zip(
        shapes, guess(shapes, prediction, model.classes or [], [*map(len, clouds)]), finite, strict=True
    ):
        yield one if usable else Failure(shape.name, f"{shape.path}: the model's logits are not finite")


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
