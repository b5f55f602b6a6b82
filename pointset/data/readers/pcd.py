"""Read PCD (the Point Cloud Library's page on PCD_V7) by pypcd4."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import COLOR_COLUMNS, Columns, named_columns
from pointset.data.readers.formats import MOST_HEADER, require_count, require_end
from pointset.errors import PointsetError
from pointset.runs.files import read_file

PACKED = ("rgb", "rgba")
CHANNELS = {"blue": 0, "green": 1, "red": 2}
"""Byte of each channel in a color that is packed into one field, as the bits of a float32 or a uint32."""
PADDING = "#$%&~~"
"""Beginning of pypcd4's names for fields without a name."""


def pcd_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """The columns of a PCD file, with the channels of packed colors."""
    from pypcd4 import PointCloud  # an extra

    content = read_file(path)
    if b"DATA ascii" in content[:MOST_HEADER]:
        content = content.replace(b"nan(ind)", b"nan")  # as programs for Windows write it
    if not re.search(rb"(?m)^COUNT ", content[:MOST_HEADER]):
        content = re.sub(
            rb"(?m)^TYPE (.*)$", lambda own: own[0] + b"\nCOUNT" + b" 1" * len(own[1].split()), content, count=1
        )
    try:
        cloud = PointCloud.from_fileobj(io.BufferedReader(io.BytesIO(content)))
    except Exception as error:  # of pydantic, numpy, lzf and the standard library
        raise PointsetError("is no PCD file, or cut off or damaged: restore it from a copy") from error
    rows = np.atleast_1d(cloud.pc_data)
    found = len(rows)
    start, size = content.find(b"\n", content.find(b"\nDATA ") + 1) + 1, rows.dtype.itemsize
    if cloud.metadata.data == "binary":
        require_end(path, len(content) - start - rows.nbytes, size)
    elif cloud.metadata.data != "ascii":  # the number of unpacked bytes
        found = int.from_bytes(content[start + 4 : start + 8], "little") // size
    require_count(found, cloud.metadata.points, "points")
    table = {name: rows[name] for name in rows.dtype.names or () if not name.startswith(PADDING)}
    columns = dict[str, np.ndarray]()
    for name, column in table.items():
        if name in PACKED and column.dtype.itemsize == 4 and not any({*group} & {*table} for group in COLOR_COLUMNS):
            channels = np.ascontiguousarray(column).view(np.uint8).reshape(-1, 4)
            columns |= {color: channels[:, place] for color, place in CHANNELS.items()}
        else:
            columns[name] = column
    return named_columns([*columns], columns.values())
