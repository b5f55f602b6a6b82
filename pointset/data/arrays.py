"""Make point sets from arrays of points and labels."""

import re
import warnings
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch

from pointset.configuration import check, check_once
from pointset.data.axes import Axis
from pointset.data.options import NORMALS, DataOptions
from pointset.data.outliers import merge_duplicates
from pointset.data.point_cache import PointCache, one_width
from pointset.data.point_sets import PointSets
from pointset.data.readers.clouds import require_cloud, require_table, table_of
from pointset.data.unusable import MOST_SAID, OnError, in_kinds, refuse_or_leave_out
from pointset.errors import PointsetError, described, one_line, quoted
from pointset.inputs import InputError, require_unmasked

Arrays = dict[str, np.ndarray]
"""The arrays of a cloud, by name: "points" [n, 3] and others [n, ...], which have one row per point."""
FLAT = ": give one cloud as X[None], flattened clouds as X.reshape(N, n, 3)"
"""Advice in the error message for an X of two dimensions."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
"""Matches a class name that is an integer. 20 digits are enough for 64 bits."""


def from_arrays(
    X: Any,
    y: Any,
    classes: Sequence[str | int] | None = None,
    features: Any = None,
    *,
    points: int | None = None,
    normalize: str = "unit-sphere",
    names: Sequence[str] | None = None,
    split: str = "train",
    data_seed: int = 0,
    up: Axis = "z",
    on_error: OnError = "raise",
) -> PointSets:
    """Make point sets from clouds in memory, as `load_dataset` does from files.

    Args:
        X: N clouds: an array [N, n, d] of floats or integers, or a list or pandas Series of arrays [n_i, d]. The first
            three columns are the coordinates, and further columns are the feature "columns". A cloud may also be a
            DataFrame with columns `x`, `y` and `z`.
        y: N labels, integers or class names.
        classes: class names in the order of the labels, such as `train.classes` for test data. None takes the sorted
            values of y. Integers in y are class names if all classes are integers (such as "-1" or 7), and otherwise
            indices into the classes.
        features: further numbers of each point, which become the feature "columns": an array [N, n, f] or [N, n], or a
            list like X. Give several features as a dict, {"normals": ..., "intensity": ...}, or as names of columns of
            the DataFrames in X, such as ["normals", "intensity"]. Normals are scaled to length 1, come first, and
            rotate with the shape.
        points: number of points per set. A cloud with fewer points is used whole. With None, every cloud is used whole.
        names: unique names of the shapes. A name and `data_seed` determine which points are chosen. None numbers the
            shapes.
        split: name of the split, such as "train" or "test".
        normalize, up, on_error, data_seed: fields of `DataOptions`.

    Returns:
        The sets, each normalised separately, so X may be in any unit. Of several points at the same position, only the
        first is kept.

    Raises:
        UnreadableShapesError: a cloud is empty, is not [n, d] with d at least 3, looks transposed, has a number that is
            not finite, or has all points at the same place. All clouds are checked, and `failures` names every bad one.
        PointsetError: the number of labels or names differs from the number of clouds, a label is not a class, or a
            name is repeated.

    Example:
        >>> sets = pointset.from_arrays(X, y, points=20)
        >>> sets.points.shape, sets.classes
        (torch.Size([24, 20, 3]), ['flat', 'round'])
    """
    clouds = _clouds(X)
    count = len(clouds)
    check("split", split, str)
    check("up", up, Axis)
    labels, class_names = _labels(y, count, classes)
    shape_names = [f"{index:06}" for index in range(count)] if names is None else list(names)
    check("names", shape_names, Sequence[str])
    _require_each("names", shape_names, count)
    check_once("names:", shape_names)
    if isinstance(features, list | tuple) and features and all(isinstance(name, str) for name in features):
        features = {name: [table_of(cloud, [name])[:, 3:] for cloud in clouds] for name in features}
    by_feature = _features(features, count)
    usable, failures = dict[int, Arrays](), dict[str, str]()
    for row, name in enumerate(shape_names):
        try:
            usable[row] = _cloud(clouds[row], {feature: values[row] for feature, values in by_feature.items()})
        except (PointsetError, ValueError) as error:
            failures[name] = f"cloud {row} of X cannot be used: {error}"
    refuse_or_leave_out(failures, len(usable), on_error, "clouds", "correct them")
    if failures:
        reasons = one_line(in_kinds(failures), MOST_SAID)
        warnings.warn(f"{len(failures)} of {count} clouds of X are left out: {reasons}", stacklevel=2)
    widths = {shape_names[row]: np.shape(cloud.get("features", [[]]))[1] for row, cloud in usable.items()}
    one_width("the features", widths)
    sizes = [len(cloud["points"]) for cloud in usable.values()]
    ragged = len(set(sizes)) > 1
    join = np.concatenate if ragged else np.stack
    arrays = {name: join([cloud[name] for cloud in usable.values()]) for name in next(iter(usable.values()))}
    cache = PointCache(
        arrays.pop("points"),
        [shape_names[row] for row in usable],
        np.array([labels[row] for row in usable], np.int64),
        class_names,
        arrays=arrays,
        skipped=failures,
        offsets=np.cumsum([0, *sizes]) if ragged else None,
    )
    shape = as_array(table_of(clouds[next(iter(usable))])).shape
    options = {
        "points": max(sizes) if points is None else points,
        "normalize": normalize,
        "data_seed": data_seed,
        "up": up,
        "on_error": on_error,
        "features": tuple(dict.fromkeys(["columns"] * (shape[1] > 3) + list(by_feature))),
    }
    return PointSets(cache, DataOptions.from_dict(options), name="arrays", split=split)


def _clouds(X: Any) -> list[Any]:
    """Return the N clouds of X as a list. `_cloud` checks each of them."""
    is_flat = getattr(X, "ndim", 3) == 2
    if is_flat or isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        hint = ": give a list of tables" if hasattr(X, "columns") else FLAT * is_flat
        raise PointsetError(f"X must be an array [N, n, d], or a list of clouds [n, d], got {described(X)}{hint}")
    if not len(X):
        raise PointsetError("X is empty: give at least one cloud")
    return list(as_array(X) if isinstance(X, torch.Tensor) else X)


def _features(features: Any, count: int) -> dict[str, Sequence[Any]]:
    """Return the features of all clouds, by name."""
    by_name = {} if features is None else dict(features) if isinstance(features, Mapping) else {"columns": features}
    for name, values in by_name.items():
        check("the name of a feature", name, str)
        if not isinstance(values, Sequence | np.ndarray | torch.Tensor) or not getattr(values, "ndim", 1):
            raise PointsetError(f"features must be an array [N, n, f] or a list of [n, f], got {described(values)}")
        _require_each(f"features {quoted(name)}", values, count)
    return by_name


def _cloud(cloud: Any, features: Mapping[str, Any]) -> Arrays:
    """Return the arrays of one cloud [n, d] and its features; a PointsetError or ValueError if it is unusable."""
    rows = require_table(as_array(table_of(cloud)))
    further = [as_array(values) for name, values in features.items() if name != NORMALS]
    tables = [rows[:, 3:]] * (rows.shape[1] > 3) + [table[:, None] if table.ndim == 1 else table for table in further]
    normals = [as_array(features[NORMALS])] if NORMALS in features else []
    cloud = require_cloud(np.hstack([rows[:, :3], *normals]), np.hstack(tables) if tables else None)
    return merge_duplicates(cloud).arrays


def _labels(y: Any, count: int, classes: Sequence[str | int] | None) -> tuple[list[int], list[str]]:
    """Return the labels of all clouds, as indices into the class names, and the class names."""
    values = as_array(y)
    if values.ndim != 1 or values.dtype.kind not in "iubUO":
        raise PointsetError(f"y must be a list of whole numbers or of names, got {described(values)}")
    _require_each("y", values, count)
    labels: list[Any] = values.tolist()
    are_numbers = values.dtype.kind in "iub"
    if not are_numbers:
        check("y", labels, Sequence[str])
    if classes is None:
        classes = sorted(set(labels))
    check("classes", classes, Sequence[str | int])
    names = [str(name) for name in classes]
    keys: list[Any] = [int(name) for name in names] if are_numbers and all(map(_WHOLE.fullmatch, names)) else names
    check_once("classes:", keys)
    expected = f"classes {quoted(', '.join(names))}"
    if are_numbers and keys is names:
        keys, expected = [*range(len(names))], f"{len(names)} classes, counted from 0"
    index_of = {key: index for index, key in enumerate(keys)}
    unknown = next((index for index, value in enumerate(labels) if value not in index_of), None)
    if unknown is not None:
        raise PointsetError(f"y has {quoted(labels[unknown])} for cloud {unknown}, and there are {expected}")
    return [index_of[value] for value in labels], names


def _require_each(what: str, values: Sized, count: int) -> None:
    if len(values) != count:
        raise PointsetError(f"{what} must have an entry for each of the {count:,} clouds of X, got {len(values):,}")


def as_array(values: Any) -> np.ndarray:
    """Return values as a numpy array. They may be a dense tensor on any device, or anything that numpy accepts."""
    if not isinstance(values, torch.Tensor):
        require_unmasked(values)
        return np.asarray(values)
    if values.layout is not torch.strided:
        raise InputError(f"a tensor must be dense, got one of layout {values.layout}: give tensor.to_dense()")
    short = values.dtype in (torch.bfloat16, torch.float16)  # numpy has no bfloat16
    return (values.float() if short else values).numpy(force=True)
