"""Embeddings of shapes: one feature vector per shape; similar shapes have embeddings at a small distance."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from pointset.data.axes import FileUp
from pointset.data.catalogue.folders import ShapeFile
from pointset.evaluation.shape_files import Failure, for_prepared
from pointset.runs.atomic import checked_suffix, write_atomically
from pointset.runs.spreadsheets import as_csv
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import embed_rows, padded_batches

EMBEDDING_SUFFIXES = (".npz", ".csv")


def save_embeddings(path: Path, model: str, shapes: Sequence[ShapeFile], rows: Float[ndarray, "N d"]) -> None:
    """Write embeddings with the name of the model and the names, classes and paths of files, as *.npz or *.csv."""
    checked_suffix(path, EMBEDDING_SUFFIXES, "a file of embeddings")
    about = {"name": [shape.name for shape in shapes], "true_class": [shape.true_class for shape in shapes]}
    columns: dict[str, Any] = {**about, "path": [str(shape.path.resolve()) for shape in shapes]}

    def write(temporary: Path) -> None:
        if path.suffix.lower() == ".npz":
            with temporary.open("wb") as file:
                np.savez_compressed(file, embedding=rows, model=model, **columns)
            return
        columns["model"] = [model] * len(shapes)
        columns.update({f"embedding_{number}": column for number, column in enumerate(rows.T.tolist())})
        lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
        temporary.write_text(as_csv(lines), encoding="utf-8")

    write_atomically(path, write)


def embed_files(
    model: Classifier, shapes: Iterable[ShapeFile], *, up: FileUp = "auto", remove_outliers: bool | None = None
) -> Iterator[tuple[ShapeFile, Float[ndarray, " d"]] | Failure]:
    """Yield each shape and its row, in their order, or why a file cannot be used; arguments as of `classify_files`."""

    def embed_all(files: Sequence[ShapeFile], clouds: Sequence[Tensor]) -> Iterator[tuple[ShapeFile, ndarray]]:
        return zip(files, embed_rows(model, padded_batches(clouds)).cpu().numpy(), strict=True)

    return for_prepared(model, shapes, embed_all, up=up, remove_outliers=remove_outliers)
