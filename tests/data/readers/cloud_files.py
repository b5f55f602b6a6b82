"""Files of points written by hand, and the errors of their readers for bad ones."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data import open_scan, read_cloud
from pointset.data.readers.clouds import CloudError


def read_both(path: Path, content: bytes) -> np.ndarray:
    """The points of a file, float64 [n, 3]; checks that reading it whole and in pieces agree."""
    path.write_bytes(content)
    points = np.concatenate([piece.astype(np.float64) for piece in open_scan(path, piece=2)()])
    np.testing.assert_array_equal(read_cloud(path).points, points.astype(np.float32))
    return points


def refusal(path: Path, content: bytes) -> str:
    """The message with which both ways of reading reject a file, without the name of the file."""
    path.write_bytes(content)
    said = set()
    for read in (read_cloud, lambda one: list(open_scan(one, piece=2)())):
        with pytest.raises(CloudError) as caught:
            read(path)
        said.add(str(caught.value))
    (message,) = said
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < len(str(path)) + 400
    return message.removeprefix(str(path))
