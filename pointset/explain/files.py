"""Attention maps as `.npz` files and pandas tables."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import torch

from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.runs.atomic import write_for_user
from pointset.runs.files import read_file
from pointset.runs.records import checked_json

if TYPE_CHECKING:
    from pandas import DataFrame

MAPS_FORMAT = 2


class _About(TypedDict):
    format: int
    maps: list[dict[str, str]]


def save_maps(maps: Sequence[AttentionMap], path: str | Path) -> Path:
    """Write maps to an `.npz` file of plain arrays and a JSON header, without pickle.

    Args:
        maps: maps from `attention_maps`.
        path: path that ends in .npz; an existing file is replaced.

    Returns:
        The path.

    Raises:
        PointsetError: the path has another suffix, or cannot be written.

    Example:
        >>> from pointset.explain.files import load_maps, save_maps
        >>> maps = pointset.attention_maps(model, test.points[0])
        >>> torch.equal(load_maps(save_maps(maps, "maps.npz"))[0].weights, maps[0].weights)
        True
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise PointsetError(f"the file name of attention maps must end in .npz, got {path}")
    about = [{"layer": entry.layer, "kind": entry.kind, "points_are": entry.points_are} for entry in maps]
    arrays = {f"weights{index}": entry.weights.numpy() for index, entry in enumerate(maps)}
    arrays |= {f"mask{index}": entry.mask.numpy() for index, entry in enumerate(maps) if entry.mask is not None}
    content = io.BytesIO()
    header = json.dumps({"format": MAPS_FORMAT, "maps": about})
    np.savez_compressed(content, about=np.array(header), **arrays)  # type: ignore[arg-type]
    return write_for_user(path, lambda temporary: temporary.write_bytes(content.getvalue()))


def load_maps(path: str | Path) -> list[AttentionMap]:
    """Read the maps that `save_maps` wrote; they are bitwise equal, and in the same order.

    Args:
        path: path of the file.

    Returns:
        The maps.

    Raises:
        PointsetError: the file is missing or damaged, or has another format.
    """
    try:
        with np.load(io.BytesIO(read_file(Path(path))), allow_pickle=False) as file:
            arrays = dict(file)
        about = checked_json(str(arrays.pop("about")).encode(), _About)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        maps = [
            AttentionMap(**fields, weights=tensors[f"weights{index}"], mask=tensors.get(f"mask{index}"))
            for index, fields in enumerate(about["maps"])
        ]
    except Exception as error:  # for a damaged file, zipfile, zlib and numpy raise many types of exceptions
        fault = " ".join(str(error).split()) or type(error).__name__
        raise PointsetError(f"{path} does not hold attention maps ({fault}): save them again with save_maps") from error
    if about["format"] != MAPS_FORMAT:
        raise PointsetError(
            f"{path} has format {about['format']}, but this version of pointset reads format {MAPS_FORMAT}"
        )
    return maps


def to_pandas(maps: Sequence[AttentionMap] | AttentionMap) -> DataFrame:
    """A table with one row per weight: layer, kind, head, query, key, weight, relative (1 is uniform).

    For a batch, the first column is `cloud`; padded queries and keys are omitted.

    Args:
        maps: one or several maps, of one cloud or of a batch.

    Returns:
        The table.

    Example:
        >>> from pointset.explain.files import to_pandas
        >>> table = to_pandas(pointset.find_map(pointset.attention_maps(model, test.points[0]), kind="pools"))
        >>> len(table), list(table.columns)
        (128, ['layer', 'kind', 'head', 'query', 'key', 'weight', 'relative'])
    """
    import pandas

    tables = []
    for attention in [maps] if isinstance(maps, AttentionMap) else maps:
        is_batch = attention.weights.dim() > 3
        for row, cloud in enumerate([attention[row] for row in range(len(attention))] if is_batch else [attention]):
            head, query, key = np.indices(tuple(cloud.weights.shape)).reshape(3, -1)
            columns: dict[str, Any] = {"cloud": row} if is_batch else {}
            columns |= {"layer": cloud.layer, "kind": cloud.kind, "head": head, "query": query, "key": key}
            columns |= {"weight": cloud.weights.numpy().ravel(), "relative": cloud.relative().numpy().ravel()}
            tables.append(pandas.DataFrame(columns))
    return pandas.concat(tables, ignore_index=True) if tables else pandas.DataFrame()
