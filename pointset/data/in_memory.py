"""Clouds that are in memory already, made into a pool: all are tried, and refused or left out together."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from pointset.data.files.clouds import Cloud, CloudError, extent_fault, require_cloud
from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.unusable import MOST_SAID, refuse_or_leave_out
from pointset.errors import PointsetError, one_line, quoted
from pointset.inputs import InputError, require_unmasked

T = TypeVar("T")


def try_all(
    names: Sequence[str], make: Callable[[int, str], T], on_error: str, what: str, where: str, stacklevel: int
) -> tuple[dict[str, T], tuple[str, ...]]:
    """Make something of every shape that can be used.

    Args:
        names: unique, of the shapes.
        make: from a shape's place and name; a PointsetError says why it cannot be used.
        on_error: "raise", or "skip" to leave shapes out with a warning.
        what: the word for several shapes.
        where: what holds them.
        stacklevel: of the warning: 1 would be the line in here.

    Returns:
        What was made, by name, and the names of those that are left out.

    Raises:
        UnreadableShapesError: some cannot be used; all were tried.
    """
    made, failures = dict[str, T](), dict[str, str]()
    for index, name in enumerate(names):
        try:
            made[name] = make(index, name)
        except PointsetError as error:
            failures[name] = str(error)
    refuse_or_leave_out(failures, len(made), on_error, what, "correct them")
    if failures:
        left_out = f"{len(failures)} of {len(names)} {what} of {where} are left out"
        said = one_line("; ".join(failures.values()), MOST_SAID)
        warnings.warn(f"{left_out}: {said}", UserWarning, stacklevel=stacklevel)
    return made, tuple(failures)


def usable_cloud(points: Any, normals: Any, with_normals: bool, features: Sequence[Any]) -> Cloud:
    """A cloud from arrays or tensors, as `require_cloud`, whose points are not all at one place.

    Args:
        points: [n, 3].
        normals: [n, 3], or None.
        with_normals: whether there must be some.
        features: each [n] or [n, f], laid side by side.
    """
    columns = as_array(points) if normals is None else np.hstack([as_array(points), as_array(normals)])
    numbers = [values[:, None] if values.ndim == 1 else values for values in map(as_array, features)]
    cloud = require_cloud(columns, with_normals, np.hstack(numbers) if numbers else None)
    if fault := extent_fault([cloud.points]):
        raise CloudError(f"the cloud {fault}")
    return cloud


def ragged_pool(
    clouds: Mapping[str, Cloud], labels: Sequence[int], classes: Sequence[str], skipped: tuple[str, ...]
) -> Pool:
    """A pool of clouds by name, one after the other; at least one.

    Raises:
        CloudError: some have another number of features than the first.
    """
    found = list(clouds.values())
    normals = [cloud.normals for cloud in found if cloud.normals is not None]
    features = [cloud.features for cloud in found if cloud.features is not None]
    widths = {name: 0 if cloud.features is None else cloud.features.shape[1] for name, cloud in clouds.items()}
    first = next(iter(widths.values()))
    odd = next((name for name, width in widths.items() if width != first), None)
    if odd is not None:
        told = f"the features of {quoted(odd)} have {widths[odd]} columns, and those before have {first}"
        raise CloudError(f"{told}: give all as many")
    return Pool(
        np.concatenate([cloud.points for cloud in found]),
        list(clouds),
        np.array(labels, np.int64),
        list(classes),
        AS_RELEASED,
        normals=np.concatenate(normals) if normals else None,
        features=np.concatenate(features) if features else None,
        skipped=skipped,
        offsets=np.cumsum([0, *(len(cloud.points) for cloud in found)]),
    )


def as_array(values: Any) -> np.ndarray:
    """A tensor of any floating type, on any device, or something else as an array.

    Raises:
        InputError: entries are masked, or a tensor is not dense.
    """
    if not isinstance(values, torch.Tensor):
        require_unmasked(values)
        return np.asarray(values)
    if values.layout is not torch.strided:
        raise InputError(f"a tensor must be dense, got one of layout {values.layout}: give tensor.to_dense()")
    short = values.dtype in (torch.bfloat16, torch.float16)  # numpy knows no bfloat16
    return (values.float() if short else values).numpy(force=True)
