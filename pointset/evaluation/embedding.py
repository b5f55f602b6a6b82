"""Embeddings of shapes: one row of numbers each, in which similar shapes are near each other.

Neighbours are found by comparing all rows, by scikit-learn. With rows of 128 numbers on two cores, the nearest of
1,000,000 rows (0.5 GB, 2.4 GB at the peak) take about a second, and near-duplicates among 100,000 rows 45 s; their time
grows with the square.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.data.axes import UsualUp
from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.point_sets import PointSets
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.predictions import warn_of_preparation
from pointset.evaluation.shape_files import Failure, for_prepared
from pointset.runs.atomic import checked_suffix, write_for_user
from pointset.runs.files import require_file
from pointset.runs.spreadsheets import as_csv
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import SETS_AT_ONCE, embed_rows, padded_batches, prepared_batches

EMBEDDING_SUFFIXES = (".npz", ".csv")


def embed(model: nn.Module, sets: Any, *, batch_size: int = SETS_AT_ONCE) -> Float[ndarray, "N d"]:
    """Embed point sets with a trained model; see `Classifier.embed`.

    Args:
        model: a model of the zoo, on the device that is to compute.
        sets: `PointSets`, whose fixed subsets are taken as they are; or clouds as `model.predict` takes them.
        batch_size: sets at a time.

    Returns:
        float32 [N, d], in the order of the sets; d depends on the model.

    Raises:
        InputError: the model has no encoder with a pooling, or these are not clouds.
        PointsetError: the sets have another number of inputs per point than the model takes.

    Example:
        >>> pointset.embed(model, test).shape
        (8, 16)
    """
    if not isinstance(sets, PointSets):
        if not isinstance(model, Classifier):
            raise PointsetError(f"model must be a model of the zoo, got a {type(model).__name__}")
        return embed_rows(model, prepared_batches(model, sets, batch_size=batch_size)).cpu().numpy()
    sets.require_inputs(model)
    warn_of_preparation(model, sets)
    return embed_rows(model, sets, batch_size=batch_size).cpu().numpy()


@dataclass(frozen=True, eq=False)
class Embedded:
    """Embeddings of files."""

    model: str
    """The name of the model, or the folder of its run."""
    names: list[str]
    classes: list[str]
    """The class of each file by its folder; empty if unknown."""
    rows: Float[ndarray, "N d"]
    files: list[str]
    """Absolute paths."""

    @classmethod
    def of(cls, model: str, embedded: Sequence[tuple[ShapeFile, Float[ndarray, " d"]]]) -> "Embedded":
        """Files with their rows."""
        shapes, rows = zip(*embedded, strict=True)
        names, classes = [shape.name for shape in shapes], [shape.true_class for shape in shapes]
        return cls(model, names, classes, np.stack(rows), [str(shape.path.resolve()) for shape in shapes])

    def save(self, path: Path) -> None:
        """Write names, classes, files and rows, atomically, as *.npz or *.csv."""
        checked_suffix(path, EMBEDDING_SUFFIXES, "a file of embeddings")
        about: Any = {"name": self.names, "true_class": self.classes, "path": self.files}

        def write(temporary: Path) -> None:
            if path.suffix.lower() == ".npz":
                with temporary.open("wb") as file:
                    np.savez_compressed(file, embedding=self.rows, model=self.model, **about)
                return
            shapes = zip(*about.values(), strict=True)
            rows = [
                dict(zip(about, shape, strict=True))
                | {"model": self.model}
                | {f"embedding_{number}": value for number, value in enumerate(row)}
                for shape, row in zip(shapes, self.rows, strict=True)
            ]
            temporary.write_text(as_csv(rows), encoding="utf-8")

        write_for_user(path, write)


def load_embedded(path: Path) -> Embedded:
    """Read the *.npz file that `Embedded.save` wrote."""
    try:
        require_file(path)
        with np.load(path, allow_pickle=False) as file:
            model, names, classes, files, rows = (
                file[key] for key in ("model", "name", "true_class", "path", "embedding")
            )
        if rows.ndim != 2 or rows.dtype.kind != "f" or {len(names), len(classes), len(files)} != {len(rows)}:
            raise ValueError(f"its embedding is {rows.dtype} {list(rows.shape)}, of {len(names)} names")
        if not np.isfinite(rows).all():
            raise ValueError("a row has a number that is not finite")
    except (ValueError, TypeError, LookupError, OSError, BadZipFile) as error:
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(
            f"{path} is not a file of embeddings ({reason}): write one with `pointset embed`"
        ) from error
    return Embedded(str(model), names.tolist(), classes.tolist(), rows.astype(np.float32), files.tolist())


def embed_files(
    model: Classifier, shapes: Iterable[ShapeFile], *, up: UsualUp = "auto", keep_outliers: bool = False
) -> Iterator[tuple[ShapeFile, Float[ndarray, " d"]] | Failure]:
    """Yield each shape and its row, in their order, or why a file cannot be used; arguments as of `classify_files`."""

    def embed_all(files: Sequence[ShapeFile], clouds: Sequence[Tensor]) -> Iterator[tuple[ShapeFile, ndarray]]:
        return zip(files, embed_rows(model, padded_batches(clouds)).cpu().numpy(), strict=True)

    return for_prepared(model, shapes, embed_all, up=up, keep_outliers=keep_outliers)


def nearest_others(
    embedded: Embedded, query: Float[ndarray, "1 d"], path: str | Path, count: int
) -> list[tuple[int, float]]:
    """The rows nearest to that of a file, the nearest first, without the file itself: their indices and distances."""
    from sklearn.neighbors import NearestNeighbors

    if query.shape[1] != embedded.rows.shape[1]:
        wide = f"{embedded.rows.shape[1]} numbers a shape, and {embedded.model} gives {query.shape[1]}"
        raise PointsetError(f"the file of embeddings has {wide}: embed the shapes again")
    others = [row for row, file in enumerate(embedded.files) if file != str(Path(path).resolve())]
    if not others:
        raise PointsetError("the folder has no other shape than this one")
    neighbours = NearestNeighbors(n_neighbors=min(count, len(others)), algorithm="brute").fit(embedded.rows[others])
    distances, indices = neighbours.kneighbors(query)
    return [(others[index], float(distance)) for index, distance in zip(indices[0], distances[0], strict=True)]


@dataclass(frozen=True)
class SimilarShape:
    """A shape that is similar to another."""

    path: str
    """The absolute path of its file."""
    true_class: str
    """Its class by its folder; empty if unknown."""
    distance: float
    """Euclidean distance of the embeddings."""


def find_similar(
    model: Classifier,
    shape: str | Path,
    folder: str | Path,
    count: int = 12,
    *,
    up: UsualUp = "auto",
    keep_outliers: bool = False,
) -> list[SimilarShape]:
    """Find the shapes of a folder that are most similar to a shape, the most similar first.

    Args:
        model: a trained model, from `load_run`; dumlp16-max+dumlp16.modelnet40-1024 suits unknown classes best.
        shape: a mesh or a cloud.
        folder: a folder of them.
        count: at most so many.
        up: the upward axis of the files; see `model.prepare`.
        keep_outliers: keep isolated points of clouds.

    Returns:
        The similar shapes, without the shape itself.

    Raises:
        PointsetError: a file cannot be used, or the folder has no other shape.

    Example:
        >>> for number, cloud in enumerate(X[:4]):
        ...     np.save(f"{number}.npy", cloud)
        >>> model, _ = pointset.load_run("isab16-pma.shapes10")
        >>> [Path(found.path).name for found in pointset.find_similar(model, "0.npy", ".", count=1)]
        ['2.npy']
    """
    shapes = [ShapeFile(Path(shape), str(shape)), *list_shapes(Path(folder))]
    rows = []
    for one in embed_files(model, shapes, up=up, keep_outliers=keep_outliers):
        if isinstance(one, Failure):
            raise PointsetError(one.reason)
        rows.append(one)
    embedded = Embedded.of("the model", rows[1:])
    near = nearest_others(embedded, rows[0][1][None], shape, count)
    return [SimilarShape(embedded.files[row], embedded.classes[row], distance) for row, distance in near]
