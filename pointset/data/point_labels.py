"""Labels per point: the whole numbers of a column of point clouds, and the classes that they stand for."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError, quoted
from pointset.runs.files import MOST_SETTINGS, read_file

NAMES = "labels.json"
"""File in a folder of clouds with the names of labels, {"2": "ground", "6": "building"}."""
MOST_CLASSES = 1000
"""More labels are a column of something else, such as numbers of points."""
UNLABELLED = -1
"""The class of points without a label, and of padding."""


def name_labels(
    labels: NDArray[np.int32], source: Path | str, names: Mapping[int, str] | None = None
) -> dict[int, str]:
    """The classes of points: the labels that occur, negative ones left out, or all those that have names.

    Args:
        labels: all labels, of any shape.
        source: the folder of the clouds, from whose `labels.json` names are taken, if it has one; or a word for them.
        names: the classes, if they are known.

    Raises:
        PointsetError: a label has no name, no point has a label, or `labels.json` is not a table of names.
    """
    values = [value for value in np.unique(labels).tolist() if value > UNLABELLED]
    if not values:
        raise PointsetError(f"no point of {source} has a label from 0 up: negative labels mean that there is none")
    if len(values) > MOST_CLASSES:
        raise PointsetError(
            f"the points of {source} have {len(values):,} labels: give a column with at most {MOST_CLASSES:,}"
        )
    where = str(source)
    if names is None and isinstance(source, Path) and (source / NAMES).exists():
        names, where = _read_names(source / NAMES), str(source / NAMES)
    if names is None:
        return {value: str(value) for value in values}
    if missing := [value for value in values if value not in names]:
        raise PointsetError(f"{where} has no name for the label {missing[0]}: add it, or correct the label")
    return dict(names)


def _read_names(file: Path) -> dict[int, str]:
    try:
        table = json.loads(read_file(file, MOST_SETTINGS))
        names = {int(value): name for value, name in table.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise PointsetError(f'{file} must be a table of names by label, such as {{"2": "ground"}}') from error
    if not all(isinstance(name, str) and name for name in names.values()) or len({*names.values()}) < len(names):
        got = quoted(", ".join(map(str, names.values())))
        raise PointsetError(f"{file} must have a name of its own for each label, got {got}")
    return dict(sorted(names.items()))


def classes_of(labels: NDArray[np.int32], point_classes: Mapping[int, str]) -> NDArray[np.int64]:
    """The index of the class of each label, in the order of `point_classes`; `UNLABELLED` for all others."""
    values = np.fromiter(point_classes, np.int64, len(point_classes))
    order = values.argsort()
    places = order[values.searchsorted(labels, sorter=order).clip(max=len(values) - 1)]
    return np.where(values[places] == labels, places, UNLABELLED)
