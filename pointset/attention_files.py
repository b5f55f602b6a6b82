"""Maps in files and tables: `.npz` to keep them, pandas to work on them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.atomic import write_atomically
from pointset.attention_maps import AttentionMap
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1


def save_maps(maps: Sequence[AttentionMap], path: str | Path) -> Path:
    """Write maps to an `.npz` file: plain arrays and a line of JSON, no pickle.

    Raises:
        PointsetError: the path has another suffix, or cannot be written.
    """
    import numpy as np

    path = Path(path)
    if path.suffix != ".npz":
        raise PointsetError(f"{path} is no name for maps: let it end in .npz")
    about = [{"layer": found.layer, "kind": found.kind, "points_are": found.points_are} for found in maps]
    arrays = {f"weights{place}": found.weights.numpy() for place, found in enumerate(maps)}
    arrays |= {f"mask{place}": found.mask.numpy() for place, found in enumerate(maps) if found.mask is not None}
    header = np.array(json.dumps({"format": FORMAT, "maps": about}))

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, about=header, **arrays)  # type: ignore[arg-type]

    try:
        write_atomically(path, write)
    except OSError as error:
        raise PointsetError(f"{path} cannot be written ({error.strerror or error}): choose another place") from error
    return path


def load_maps(path: str | Path) -> list[AttentionMap]:
    """Read what `save_maps` wrote, bit for bit.

    Raises:
        PointsetError: the file is missing, damaged or of another format.
    """
    import numpy as np
    import torch

    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["format"] != FORMAT:
                raise PointsetError(f"{path} has format {about['format']}, and this version of pointset reads {FORMAT}")
            return [
                AttentionMap(
                    **one,
                    weights=torch.from_numpy(file[f"weights{place}"]),
                    mask=torch.from_numpy(file[f"mask{place}"]) if f"mask{place}" in file else None,
                )
                for place, one in enumerate(about["maps"])
            ]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise PointsetError(f"{path} holds no attention maps ({error}): save them again with save_maps") from error


def to_pandas(maps: Sequence[AttentionMap] | AttentionMap) -> DataFrame:
    """A table with one line per weight: layer, kind, head, query, key, weight, relative (1 = uniform).

    Of a batch, a first column `cloud`; padded queries and keys are left out.

    Raises:
        PointsetError: pandas is not installed.
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
    import numpy as np
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
