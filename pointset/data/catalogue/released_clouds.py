"""Check the clouds of released files, and put the usable ones into a pool."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.readers.clouds import extent_fault, float32_fault
from pointset.data.unusable import MOST_SAID, refuse_or_leave_out
from pointset.errors import PointsetError, one_line

REMEDY = "correct them, or get the release again"


@dataclass(frozen=True, eq=False)
class Clouds:
    """The usable clouds of one file, which have equal sizes."""

    points: NDArray[np.float32]
    """[N, P, 3]."""
    labels: NDArray[np.int64]
    """[N]."""
    names: list[str]
    failures: dict[str, str] = field(default_factory=dict)
    """The reasons why other rows cannot be used, by name."""


def check_clouds(
    points: NDArray[Any], labels: NDArray[Any], classes: int, path: Path, stem: str | None = None
) -> Clouds:
    """Check clouds [N, P, 3] and labels [N] or [N, 1]; a cloud's name is `stem` (default: the file's) and its row.

    Raises:
        PointsetError: an array has a wrong shape or type.
    """
    if points.ndim != 3 or points.shape[2] != 3 or 0 in points.shape or points.dtype.kind != "f":
        raise PointsetError(f"{path}: 'data' must be floats [N, P, 3], got {points.dtype} {list(points.shape)}")
    if labels.shape not in ((len(points),), (len(points), 1)) or labels.dtype.kind not in "iu":
        expected = f"integers [{len(points)}, 1]"
        raise PointsetError(f"{path}: 'label' must be {expected}, got {labels.dtype} {list(labels.shape)}")
    labels = labels.reshape(-1)
    names = [f"{path.stem if stem is None else stem}/{row}" for row in range(len(points))]
    outside = (labels < 0) | (labels >= classes)
    infinite = ~np.isfinite(points).all(axis=(1, 2))
    faults = _without_extent(points)
    faults |= {int(row): "has a coordinate that is not finite" for row in np.flatnonzero(infinite)}
    faults |= {
        int(row): f"has label {labels[row]}, but there are only {classes} classes" for row in np.flatnonzero(outside)
    }
    if points.dtype.itemsize > 4:
        faults |= _too_wide(points, np.flatnonzero(~infinite & ~outside))
    kept = np.array([row for row in range(len(points)) if row not in faults], np.int64) if faults else slice(None)
    return Clouds(
        points[kept].astype(np.float32, copy=False),
        labels[kept].astype(np.int64),
        [name for row, name in enumerate(names) if row not in faults],
        {names[row]: f"{path}: row {row} {faults[row]}" for row in sorted(faults)},
    )


def pool_of_clouds(
    parts: Sequence[Clouds], failures: Mapping[str, str], classes: list[str], where: str, on_error: str
) -> Pool:
    """Make a pool from the files of one split.

    Args:
        parts: the clouds of the readable files.
        failures: the reasons why other files cannot be read, by name.
        classes: names of the classes.
        where: the dataset's folder and split, for messages.
        on_error: "raise", or "skip" to leave out files and clouds that cannot be used.

    Raises:
        UnreadableShapesError: files or rows cannot be used.
        PointsetError: the files hold clouds of different sizes.
    """
    failures = {**failures, **{name: reason for part in parts for name, reason in part.failures.items()}}
    finished = sum(len(part.names) for part in parts)
    refuse_or_leave_out(failures, finished, on_error, "clouds or files of them", REMEDY)
    if failures:
        reasons = one_line("; ".join(failures.values()), MOST_SAID)
        left_out = f"{where} files: {len(failures)} clouds or files of them are left out: {reasons}"
        warnings.warn(left_out, stacklevel=7)  # the caller of load_dataset
    sizes = {part.points.shape[1] for part in parts if part.names}
    if len(sizes) > 1:
        raise PointsetError(f"{where} files hold clouds of different sizes: {sorted(sizes)}")
    return Pool(
        _joined([part.points for part in parts if part.names]),
        [name for part in parts for name in part.names],
        np.concatenate([part.labels for part in parts]),
        classes,
        AS_RELEASED,
        skipped=tuple(failures),
    )


def _joined(arrays: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _without_extent(points: NDArray[Any]) -> dict[int, str]:
    """Faults of the rows whose points are all at one place; only rows with equal first and last point are examined."""
    alike = np.flatnonzero((points[:, 0] == points[:, -1]).all(axis=1))
    found = {int(row): extent_fault([points[row]]) for row in alike}
    return {row: fault for row, fault in found.items() if fault}


def _too_wide(points: NDArray[Any], rows: NDArray[np.int64]) -> dict[int, str]:
    """Faults of the rows whose coordinates float32 cannot represent."""
    least, most = points.min(axis=1), points.max(axis=1)
    found = {int(row): float32_fault(least[row], most[row]) for row in rows}
    return {row: fault for row, fault in found.items() if fault}
