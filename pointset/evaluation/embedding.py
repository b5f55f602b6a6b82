"""Embeddings of shapes: one row of numbers each, in which similar shapes are near each other.

Neighbours are found by comparing all rows, by scikit-learn. With rows of 128 numbers on two cores, the nearest of
1,000,000 rows (0.5 GB, 2.4 GB at the peak) take about a second, and near-duplicates among 100,000 rows 45 s; their time
grows with the square.
"""

import csv
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from pointset.data.axes import UsualUp
from pointset.data.catalogue.folders import ShapeFile, list_shapes
from pointset.data.point_sets import PointSets
from pointset.errors import REPEATED, PointsetError, one_line
from pointset.evaluation.files import Failure, read_points
from pointset.runs.atomic import checked_suffix, write_for_user
from pointset.runs.files import require_file
from pointset.runs.spreadsheets import as_csv, read_csv
from pointset.runs.workers import Workers, run_in_workers
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import SETS_AT_ONCE, embed_rows, padded_batches, prepared_batches

CHUNK = 16
"""Files that one task of another process reads."""
FEW_FILES = 256
"""So many files or fewer are not worth other processes, which take seconds to start."""
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
    """Read what `Embedded.save` wrote."""
    checked_suffix(path, EMBEDDING_SUFFIXES, "a file of embeddings")
    try:
        require_file(path)
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                model, names, classes, files, rows = (
                    file[key] for key in ("model", "name", "true_class", "path", "embedding")
                )
            return _checked(str(model), names.tolist(), classes.tolist(), rows, files.tolist())
        table = read_csv(path)
        columns = [name for name in table[0] if name.startswith("embedding_")]
        rows = np.array([[row[name] for name in columns] for row in table], np.float32)
        names, classes, paths = ([row[key] for row in table] for key in ("name", "true_class", "path"))
        return _checked(table[0]["model"], names, classes, rows, paths)
    except (ValueError, TypeError, LookupError, OSError, BadZipFile, csv.Error) as error:
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(
            f"{path} is not a file of embeddings ({reason}): write one with `pointset embed`"
        ) from error


def _checked(model: str, names: list[str], classes: list[str], rows: ndarray, files: list[str]) -> Embedded:
    """The rows of a file, of as many shapes as it names; a ValueError if they are others."""
    if rows.ndim != 2 or rows.dtype.kind != "f" or {len(names), len(classes), len(files)} != {len(rows)}:
        raise ValueError(f"its embedding is {rows.dtype} {list(rows.shape)}, of {len(names)} names")
    if not np.isfinite(rows).all():
        raise ValueError(f"the row of {names[int(np.argmin(np.isfinite(rows).all(axis=1)))]} has a number not finite")
    return Embedded(model, names, classes, rows.astype(np.float32), files)


def embed_files(
    model: Classifier,
    shapes: Sequence[ShapeFile],
    *,
    up: UsualUp = "auto",
    keep_outliers: bool = False,
) -> Iterator[tuple[ShapeFile, Float[ndarray, " d"]] | Failure]:
    """Yield each shape and its row, in their order, or why a file cannot be used; arguments as of `classify_files`."""
    read = partial(read_points, model.preparation, up=up, keep_outliers=keep_outliers)
    answers = zip(shapes, _read_all(read, shapes), strict=True)
    while block := [*itertools.islice(answers, SETS_AT_ONCE)]:
        clouds = [points for _, points in block if isinstance(points, Tensor)]
        rows = iter(embed_rows(model, padded_batches(clouds)).cpu().numpy() if clouds else ())
        for shape, points in block:
            yield points if isinstance(points, Failure) else (shape, next(rows))


def _read_all(read: Callable[[ShapeFile], Tensor | Failure], shapes: Sequence[ShapeFile]) -> Iterator[Tensor | Failure]:
    """The results for all shapes, of many from other processes."""
    from joblib import delayed

    if len(shapes) <= FEW_FILES:
        yield from map(read, shapes)
        return
    batches = [shapes[first : first + CHUNK] for first in range(0, len(shapes), CHUNK)]
    tasks = (delayed(_batch)(read, batch) for batch in batches)
    for results, messages in run_in_workers(tasks, Workers(), Workers().cores, ordered=True):
        for message in messages:
            warnings.warn(message, stacklevel=1)
        yield from results


def _batch(read: Any, shapes: Sequence[ShapeFile]) -> tuple[list[Any], list[str]]:
    """Results, and warnings for the main process, which a worker would print in its own way."""
    with warnings.catch_warnings(record=True) as caught:
        return [read(shape) for shape in shapes], sorted({str(warning.message) for warning in caught})


def nearest(
    rows: Float[ndarray, "N d"], queries: Float[ndarray, "Q d"], count: int
) -> tuple[Float[ndarray, "Q k"], Int[ndarray, "Q k"]]:
    """Euclidean distances and indices of the `count` rows nearest to each query, the nearest first."""
    from sklearn.neighbors import NearestNeighbors

    count = min(count, len(rows))
    distances, indices = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows).kneighbors(queries)
    return distances, indices


def nearest_others(
    embedded: Embedded, query: Float[ndarray, "1 d"], path: str | Path, count: int
) -> list[tuple[int, float]]:
    """The rows nearest to that of a file, the nearest first, without the file itself: their indices and distances."""
    if query.shape[1] != embedded.rows.shape[1]:
        wide = f"{embedded.rows.shape[1]} numbers a shape, and {embedded.model} gives {query.shape[1]}"
        raise PointsetError(f"the file of embeddings has {wide}: embed the shapes again")
    others = [row for row, file in enumerate(embedded.files) if file != str(Path(path).resolve())]
    if not others:
        raise PointsetError("the folder has no other shape than this one")
    distances, indices = nearest(embedded.rows[others], query, count)
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
        >>> model, _ = pointset.load_run("dumlp16-max+dumlp16.modelnet40-1024")
        >>> [Path(found.path).name for found in pointset.find_similar(model, "0.npy", ".", count=1)]
        ['2.npy']
    """
    shapes = [ShapeFile(Path(shape), str(shape)), *list_shapes(Path(folder))]
    rows, files = [], []
    for one in embed_files(model, shapes, up=up, keep_outliers=keep_outliers):
        if isinstance(one, Failure):
            raise PointsetError(one.reason)
        files.append(one[0])
        rows.append(one[1])
    paths, classes = [str(file.path.resolve()) for file in files[1:]], [file.true_class for file in files[1:]]
    embedded = Embedded("the model", paths, classes, np.stack(rows[1:]), paths)
    near = nearest_others(embedded, rows[0][None], shape, count)
    return [SimilarShape(paths[row], classes[row], distance) for row, distance in near]
