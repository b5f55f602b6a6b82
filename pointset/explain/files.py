"""Attention maps as `.npz` files and pandas tables."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.lib.format import read_array
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.runs.atomic import write_for_user

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 2


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
    header = np.array(json.dumps({"format": FORMAT, "maps": about, "arrays": list(arrays)}))

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, about=header, **arrays)  # type: ignore[arg-type]

    return write_for_user(path, write)


def load_maps(path: str | Path) -> list[AttentionMap]:
    """Read the maps that `save_maps` wrote; they are bitwise equal.

    Args:
        path: path of the file.

    Returns:
        The maps, in the same order.

    Raises:
        PointsetError: the file is missing or damaged, or has another format.

    Example:
        >>> from pointset.explain.files import load_maps, save_maps
        >>> path = save_maps(pointset.attention_maps(model, test.points[0]), "maps.npz")
        >>> load_maps(path)[0].layer
        'encoder.0.reads'
    """
    try:
        about, arrays = _read(Path(path))
        return [
            AttentionMap(
                **fields,
                weights=torch.from_numpy(arrays[f"weights{index}"]),
                mask=torch.from_numpy(arrays[f"mask{index}"]) if f"mask{index}" in arrays else None,
            )
            for index, fields in enumerate(about["maps"])
        ]
    except PointsetError:
        raise
    except Exception as error:  # for a damaged file, zipfile, zlib and numpy raise many types of exceptions
        fault = " ".join(str(error).split()) or type(error).__name__
        raise PointsetError(f"{path} does not hold attention maps ({fault}): save them again with save_maps") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header of the file, and its arrays by name.

    Each member is read completely before it is parsed, because zipfile verifies the checksum only at the end;
    `numpy.load` stops at the size in the array's header, which may be damaged.
    """
    with zipfile.ZipFile(path) as content:

        def array(name: str) -> NDArray[Any]:
            return read_array(io.BytesIO(content.read(f"{name}.npy")), allow_pickle=False)

        about = json.loads(str(array("about")))
        if about["format"] != FORMAT:
            raise PointsetError(
                f"{path} has format {about['format']}, but this version of pointset reads format {FORMAT}: save the "
                "maps again with save_maps"
            )
        return about, {name: array(name) for name in about["arrays"]}  # a missing mask is an error here


def to_pandas(maps: Sequence[AttentionMap] | AttentionMap) -> DataFrame:
    """A table with one row per weight: layer, kind, head, query, key, weight, relative (1 is uniform).

    For a batch, the first column is `cloud`; padded queries and keys are omitted.

    Args:
        maps: one or several maps, of one cloud or of a batch.

    Returns:
        The table.

    Raises:
        PointsetError: pandas is not installed.

    Example:
        >>> from pointset.explain.files import to_pandas
        >>> table = to_pandas(pointset.find_map(pointset.attention_maps(model, test.points[0]), kind="pools"))
        >>> len(table), list(table.columns)
        (128, ['layer', 'kind', 'head', 'query', 'key', 'weight', 'relative'])
    """
    try:
        import pandas
    except ImportError as error:
        raise PointsetError("a table of weights needs pandas: run `pip install pandas`") from error
    tables = []
    for attention in [maps] if isinstance(maps, AttentionMap) else maps:
        clouds = [attention] if attention.weights.dim() == 3 else [attention[row] for row in range(len(attention))]
        tables += [_table(cloud, None if cloud is attention else row) for row, cloud in enumerate(clouds)]
    return pandas.concat(tables, ignore_index=True)


def _table(attention: AttentionMap, cloud: int | None) -> DataFrame:
    import pandas

    head, query, key = (index.ravel() for index in np.indices(tuple(attention.weights.shape)))
    columns = {} if cloud is None else {"cloud": cloud}
    return pandas.DataFrame(
        {
            **columns,
            "layer": attention.layer,
            "kind": attention.kind,
            "head": head,
            "query": query,
            "key": key,
            "weight": attention.weights.numpy().ravel(),
            "relative": attention.relative().numpy().ravel(),
        }
    )
