"""Maps in `.npz` files and in pandas tables."""

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
    """Write maps to an `.npz` file: plain arrays and a line of JSON, no pickle.

    Args:
        maps: as `attention_maps` gives them.
        path: ends in .npz; a file there is replaced.

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
        raise PointsetError(f"{path}: the name of a file of maps must end in .npz")
    about = [{"layer": found.layer, "kind": found.kind, "points_are": found.points_are} for found in maps]
    arrays = {f"weights{place}": found.weights.numpy() for place, found in enumerate(maps)}
    arrays |= {f"mask{place}": found.mask.numpy() for place, found in enumerate(maps) if found.mask is not None}
    header = np.array(json.dumps({"format": FORMAT, "maps": about, "arrays": list(arrays)}))

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, about=header, **arrays)  # type: ignore[arg-type]

    return write_for_user(path, write)


def load_maps(path: str | Path) -> list[AttentionMap]:
    """Read what `save_maps` wrote, bit for bit.

    Args:
        path: of the file.

    Returns:
        The maps, in their order.

    Raises:
        PointsetError: the file is missing, damaged or of another format.

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
                **one,
                weights=torch.from_numpy(arrays[f"weights{place}"]),
                mask=torch.from_numpy(arrays[f"mask{place}"]) if f"mask{place}" in arrays else None,
            )
            for place, one in enumerate(about["maps"])
        ]
    except PointsetError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds on a damaged file
        fault = " ".join(str(error).split()) or type(error).__name__
        raise PointsetError(f"{path} does not hold attention maps ({fault}): save them again with save_maps") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header of the file, and its arrays by name.

    Every member is read to its end before it is parsed, because only then its checksum is compared; `numpy.load` stops
    where the array's header says, which may be damaged.
    """
    with zipfile.ZipFile(path) as content:

        def array(name: str) -> NDArray[Any]:
            return read_array(io.BytesIO(content.read(f"{name}.npy")), allow_pickle=False)

        about = json.loads(str(array("about")))
        if about["format"] != FORMAT:
            raise PointsetError(
                f"{path} has format {about['format']}, and this version of pointset reads {FORMAT}: save the maps "
                "again with save_maps"
            )
        return about, {name: array(name) for name in about["arrays"]}  # a missing mask is an error here


def to_pandas(maps: Sequence[AttentionMap] | AttentionMap) -> DataFrame:
    """A table with one line per weight: layer, kind, head, query, key, weight, relative (1 = uniform).

    Of a batch, a first column `cloud`; padded queries and keys are left out.

    Args:
        maps: one or several, of one cloud or of a batch.

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
    for found in [maps] if isinstance(maps, AttentionMap) else maps:
        clouds = [found] if found.weights.dim() == 3 else [found[row] for row in range(len(found))]
        tables += [_table(cloud, None if cloud is found else row) for row, cloud in enumerate(clouds)]
    return pandas.concat(tables, ignore_index=True)


def _table(found: AttentionMap, cloud: int | None) -> DataFrame:
    import pandas

    head, query, key = (index.ravel() for index in np.indices(tuple(found.weights.shape)))
    columns = {} if cloud is None else {"cloud": cloud}
    return pandas.DataFrame(
        {
            **columns,
            "layer": found.layer,
            "kind": found.kind,
            "head": head,
            "query": query,
            "key": key,
            "weight": found.weights.numpy().ravel(),
            "relative": found.relative().numpy().ravel(),
        }
    )
