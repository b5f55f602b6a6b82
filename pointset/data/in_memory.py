"""Make a pool from clouds in memory; all clouds are checked, and all bad ones are reported or left out together."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.readers.clouds import CloudError, arrays_of, extent_fault, require_cloud
from pointset.data.unusable import MOST_SAID, refuse_or_leave_out
from pointset.errors import PointsetError, one_line, quoted
from pointset.inputs import InputError, require_unmasked

T = TypeVar("T")
Arrays = Mapping[str, np.ndarray]
"""The "points" [n, 3] of a shape, and other numbers of each point [n, ...], by name."""


def try_all(
    names: Sequence[str], make: Callable[[int, str], T], on_error: str, what: str, where: str, stacklevel: int
) -> tuple[dict[str, T], tuple[str, ...]]:
    """Apply `make` to every shape, and collect its errors.

    Args:
        names: unique names of the shapes.
        make: called with a shape's index and name; raises a PointsetError if the shape cannot be used.
        on_error: "raise", or "skip" to leave shapes out with a warning.
        what: plural noun for the shapes in messages.
        where: name of their container in messages.
        stacklevel: of the warning, counted from this function (1).

    Returns:
        The results by name, and the names of the shapes left out.

    Raises:
        UnreadableShapesError: some shapes cannot be used; all were tried.
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
        reasons = one_line("; ".join(failures.values()), MOST_SAID)
        warnings.warn(f"{left_out}: {reasons}", UserWarning, stacklevel=stacklevel)
    return made, tuple(failures)


def usable_cloud(points: Any, normals: Any, with_normals: bool, features: Sequence[Any]) -> Arrays:
    """Make a cloud from arrays or tensors, checked by `require_cloud`; its points must not all be at one place.

    Args:
        points: [n, 3].
        normals: [n, 3], or None.
        with_normals: whether normals are required.
        features: arrays [n] or [n, f], which are concatenated.
    """
    columns = as_array(points) if normals is None else np.hstack([as_array(points), as_array(normals)])
    numbers = [values[:, None] if values.ndim == 1 else values for values in map(as_array, features)]
    cloud = require_cloud(columns, with_normals, np.hstack(numbers) if numbers else None)
    if fault := extent_fault([cloud.points]):
        raise CloudError(f"the cloud {fault}")
    return arrays_of(cloud)


def pool_of(
    clouds: Mapping[str, Arrays], labels: Sequence[int], classes: Sequence[str], skipped: tuple[str, ...], even: bool
) -> Pool:
    """A pool of at least one cloud, given by name; ragged, unless `even` and all clouds have one size.

    Raises:
        CloudError: the number of features of some cloud differs from the first one's.
    """
    sizes = [len(arrays["points"]) for arrays in clouds.values()]
    shape = (len(sizes), sizes[0]) if even and len(set(sizes)) == 1 else (sum(sizes),)
    first = next(iter(clouds.values()))
    for name, arrays in clouds.items():
        width, expected = (other["features"].shape[1] if "features" in other else 0 for other in (arrays, first))
        if width != expected:
            raise CloudError(
                f"the features of {quoted(name)} have {width} columns, and those before have {expected}: give all the "
                "same number"
            )

    def joined(name: str) -> Any:
        whole = np.concatenate([arrays[name] for arrays in clouds.values()])
        return whole.reshape(*shape, *whole.shape[1:])

    return Pool(
        joined("points"),
        list(clouds),
        np.array(labels, np.int64),
        list(classes),
        AS_RELEASED,
        arrays={name: joined(name) for name in first if name != "points"},
        skipped=skipped,
        offsets=np.cumsum([0, *sizes]) if len(shape) == 1 else None,
    )


def as_array(values: Any) -> np.ndarray:
    """Convert values to an array: a tensor of any type and device, or anything that numpy accepts.

    Raises:
        InputError: an array has masked entries, or a tensor is not dense.
    """
    if not isinstance(values, torch.Tensor):
        require_unmasked(values)
        return np.asarray(values)
    if values.layout is not torch.strided:
        raise InputError(f"a tensor must be dense, got one of layout {values.layout}: give tensor.to_dense()")
    short = values.dtype in (torch.bfloat16, torch.float16)  # numpy has no bfloat16
    return (values.float() if short else values).numpy(force=True)
